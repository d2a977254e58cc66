//! Everything that can be wrong with a request, found before anything is stored.

use crate::gateway_api::Violation;
use crate::registry::{KindEntry, Registry};
use converge_domain::document::{Document, ProviderConfigDocument, ResourceDocument};
use converge_domain::json::pointer::Pointer;
use converge_domain::kind;
use converge_domain::{KindRef, ResourceRef};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How alike two kind names must be (Jaro-Winkler) for one to be suggested for the other.
const ALIKE: f64 = 0.7;

/// The kinds as they will be once the request is applied.
pub(super) struct Kinds<'a> {
    registry: &'a Registry,
    overlay: HashMap<KindRef, KindEntry>,
}

/// Advice and violations of a whole request.
#[derive(Default)]
pub(super) struct Findings {
    pub violations: Vec<Violation>,
    /// By document.
    pub warnings: HashMap<usize, Vec<String>>,
}

impl<'a> Kinds<'a> {
    /// Overlays the request's manifests over the live ones.
    pub fn new(registry: &'a Registry, documents: &[Document], findings: &mut Findings) -> Self {
        let mut overlay = HashMap::new();
        for (index, document) in documents.iter().enumerate() {
            let Document::Kind(manifest) = document else { continue };
            let subject = format!("kind/{}", manifest.kind_ref());
            let broken = kind::check(manifest);
            findings.warnings.insert(index, kind::warnings(manifest));
            if broken.is_empty() {
                match KindEntry::compile(Arc::new((**manifest).clone())) {
                    Ok(entry) => {
                        if overlay.insert(manifest.kind_ref(), entry).is_some() {
                            findings.add(index, &subject, "", "the request publishes this version twice");
                        }
                    }
                    Err(message) => findings.add(index, &subject, "", &message),
                }
            }
            for violation in broken {
                findings.add(index, &subject, &violation.pointer, &violation.message);
            }
        }
        Self { registry, overlay }
    }

    /// The kind version as it will be.
    pub fn get(&self, kind: &KindRef) -> Option<KindEntry> {
        self.overlay.get(kind).cloned().or_else(|| self.registry.kind(kind))
    }

    /// Says that a kind version is unknown, and what is known instead.
    fn unknown(&self, kind: &KindRef) -> String {
        let known: HashSet<KindRef> = self
            .registry
            .kinds()
            .iter()
            .map(|entry| entry.manifest.kind_ref())
            .chain(self.overlay.keys().cloned())
            .collect();
        let mut versions: Vec<_> = known.iter().filter(|other| other.kind == kind.kind).collect();
        versions.sort();
        if let Some(newest) = versions.last() {
            return format!(
                "kind {kind} is not known; {newest} is. Apply the manifest of version {} first",
                kind.kind_version
            );
        }
        let likeness = |other: &KindRef| strsim::jaro_winkler(&other.kind, &kind.kind);
        match known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))) {
            Some(nearest) if likeness(nearest) > ALIKE => {
                format!("kind {kind} is not known; did you mean {nearest}?")
            }
            _ => format!("kind {kind} is not known; apply its manifest first"),
        }
    }
}

impl Findings {
    pub fn add(&mut self, document: usize, subject: &str, pointer: &str, message: &str) {
        self.violations.push(Violation {
            document,
            subject: subject.to_owned(),
            pointer: pointer.to_owned(),
            message: message.to_owned(),
        });
    }

    /// Checks configs, bindings and resources against the kinds.
    pub fn check(&mut self, kinds: &Kinds<'_>, documents: &[Document]) {
        let mut seen = HashSet::new();
        for (index, document) in documents.iter().enumerate() {
            match document {
                Document::Kind(_) => {}
                Document::ProviderConfig(config) => {
                    self.once(&mut seen, index, ResourceRef::new("providerconfig", &config.name));
                    self.check_config(kinds, index, config);
                }
                Document::ReactorBinding(binding) => {
                    self.once(&mut seen, index, ResourceRef::new("reactorbinding", &binding.name));
                }
                Document::Resource(resource) => {
                    self.once(&mut seen, index, ResourceRef::new(&resource.kind, &resource.name));
                    self.check_resource(kinds, index, resource);
                }
            }
        }
    }

    fn once(&mut self, seen: &mut HashSet<ResourceRef>, index: usize, name: ResourceRef) {
        if !seen.insert(name.clone()) {
            self.add(index, &name.to_string(), "/name", "the request declares it twice");
        }
    }

    fn check_config(&mut self, kinds: &Kinds<'_>, index: usize, config: &ProviderConfigDocument) {
        let subject = format!("providerconfig/{}", config.name);
        let kind = KindRef::new(&config.kind, config.kind_version);
        match kinds.get(&kind) {
            None => self.add(index, &subject, "/kind", &kinds.unknown(&kind)),
            Some(entry) => {
                for violation in entry.config_schema.iter().flat_map(|schema| schema.violations(&config.spec))
                {
                    self.add(index, &subject, &format!("/spec{}", violation.pointer), &violation.message);
                }
            }
        }
    }

    fn check_resource(&mut self, kinds: &Kinds<'_>, index: usize, resource: &ResourceDocument) {
        let subject = format!("{}/{}", resource.kind, resource.name);
        let kind = KindRef::new(&resource.kind, resource.kind_version);
        let Some(entry) = kinds.get(&kind) else {
            return self.add(index, &subject, "/kind", &kinds.unknown(&kind));
        };
        // A field that a value flow will fill may be missing now; it is checked when the value is there.
        let pending: Vec<Pointer> = resource
            .depends_on
            .iter()
            .flat_map(|dependency| &dependency.values)
            .filter_map(|flow| Pointer::parse(&flow.dependent_field).ok())
            .collect();
        for violation in
            entry.spec_schema.iter().flat_map(|schema| schema.violations_pending(&resource.spec, &pending))
        {
            self.add(index, &subject, &format!("/spec{}", violation.pointer), &violation.message);
        }
    }
}
