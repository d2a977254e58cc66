//! `converge list`: things of a type, page by page, and live with `--watch`.

use crate::client::model::{
    Kind, KindsAnswer, ProviderConfigsAnswer, Resource, ResourceChange, ResourcesAnswer,
};
use crate::client::{Client, ClientError, Followed, operations};
use crate::console;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::{Columns, render};
use crate::output::{Format, age, view, yaml};
use crate::reference::{self, Target};
use clap::Args;
use converge_domain::resource::Phase;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Resources per request: enough to make the round trip cheap, few enough to hold.
const PAGE: usize = 500;

/// Lists things of a type.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// A kind (vpc), or kind, providerconfig, resource
    #[arg(value_name = "TYPE", value_parser = listable)]
    target: Target,
    #[command(flatten)]
    show: Show,
}

/// What to show and how; shared with `get`.
#[derive(Debug, Args)]
pub struct Show {
    /// Only resources with this label; may be repeated
    #[arg(short = 'l', long = "selector", value_name = "KEY=VALUE", value_parser = reference::label, value_delimiter = ',')]
    labels: Vec<(String, String)>,
    /// Only resources in this phase; may be repeated
    #[arg(long = "phase", value_name = "PHASE", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// Only resources or provider configs of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Format,
    /// Go on with what changes (JSON: one object a line)
    #[arg(short = 'w', long)]
    watch: bool,
}

impl Show {
    pub const fn watches(&self) -> bool {
        self.watch
    }

    pub const fn output(&self) -> Format {
        self.output
    }

    fn filter(&self, kind: Option<&str>, name: Option<&str>) -> Result<Value, Failure> {
        let kind = match (kind, self.kind.as_deref()) {
            (Some(kind), Some(other)) if kind != other => {
                return Err(Failure::usage(format_args!("--kind {other} contradicts the type {kind}")));
            }
            (kind, other) => kind.or(other),
        };
        let mut filter = Map::new();
        let mut set = |key: &str, value: Value| filter.insert(key.to_owned(), value);
        if let Some(kind) = kind {
            set("kind", kind.into());
        }
        if let Some(name) = name {
            set("namePrefix", name.into());
        }
        if !self.phases.is_empty() {
            set("phase", self.phases.iter().map(|phase| phase.as_str()).collect());
        }
        if !self.labels.is_empty() {
            set(
                "labels",
                Value::Object(self.labels.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect()),
            );
        }
        Ok(Value::Object(filter))
    }
}

fn listable(word: &str) -> Result<Target, String> {
    if word.contains('/') {
        return Err(format!("`{word}` names one thing; `converge get {word}` shows it"));
    }
    reference::target(word)
}

/// Runs it.
///
/// # Errors
/// What the server says.
pub async fn run(args: ListArgs, client: &Client) -> Outcome {
    show(client, args.target, &args.show).await
}

/// Shows everything that `target` names.
///
/// # Errors
/// [`Exit::NotFound`] when something was named and is not there.
pub async fn show(client: &Client, target: Target, show: &Show) -> Outcome {
    if show.watch && matches!(target, Target::Kinds { .. } | Target::ProviderConfigs { .. }) {
        return Err(Failure::usage("only resources can be watched"));
    }
    match target {
        Target::Resources { kind } => resources(client, kind.as_deref(), None, show).await,
        Target::Resource(reference) => {
            resources(client, Some(&reference.kind), Some(&reference.name), show).await
        }
        Target::Kinds { kind, version } => kinds(client, kind.as_deref(), version, show.output).await,
        Target::ProviderConfigs { name } => configs(client, name.as_deref(), show).await,
    }
}

async fn resources(client: &Client, kind: Option<&str>, name: Option<&str>, show: &Show) -> Outcome {
    let filter = show.filter(kind, name)?;
    let one_kind = filter.get("kind").and_then(Value::as_str).map(str::to_owned);
    let wide = show.output == Format::Wide;
    let full = matches!(show.output, Format::Json | Format::Yaml);
    let mut printer = match show.output {
        Format::Table | Format::Wide => {
            Printer::Table(ResourceTable::new(client, one_kind.as_deref(), wide).await?)
        }
        Format::Name => Printer::Name,
        Format::Json if show.watch => Printer::JsonLines,
        Format::Json => Printer::Json { held: None },
        Format::Yaml => Printer::Yaml { any: false },
    };
    let columns = matches!(&printer, Printer::Table(table) if !table.pointers.is_empty());
    let mut after: Option<String> = None;
    let mut count = 0;
    let position = loop {
        let variables = json!({
            "filter": filter, "first": PAGE, "after": after, "wide": wide, "columns": columns, "full": full,
        });
        let answer: ResourcesAnswer = client.ask(operations::RESOURCES, variables).await?;
        let mut page = answer.resources;
        if let Some(name) = name {
            // The API filters by prefix; the reference is the whole name.
            page.nodes.retain(|resource| resource.name == name);
        }
        count += page.nodes.len();
        printer.page(&page.nodes)?;
        match page.page_info.end_cursor {
            Some(cursor) if page.page_info.has_next_page => after = Some(cursor),
            _ => break page.position,
        }
    };
    printer.end(position)?;
    if count == 0 {
        console::note("nothing found");
    }
    if show.watch {
        watch(client, &filter, name, position, (wide, columns, full), printer).await
    } else {
        Ok(())
    }
}

async fn watch(
    client: &Client,
    filter: &Value,
    name: Option<&str>,
    position: u64,
    (wide, columns, full): (bool, bool, bool),
    mut printer: Printer,
) -> Outcome {
    let mut variables = Map::new();
    variables.insert("filter".to_owned(), filter.clone());
    variables.insert("wide".to_owned(), wide.into());
    variables.insert("columns".to_owned(), columns.into());
    variables.insert("full".to_owned(), full.into());
    let mut follow = client.follow::<ResourceChange>(operations::FOLLOW_RESOURCES, variables, position);
    loop {
        match follow.next().await? {
            Followed::Item(change) if name.is_none_or(|name| change.name == name) => {
                printer.change(&change)?
            }
            Followed::Item(_) => {}
            Followed::Interrupted { from, reason } => {
                console::note(format_args!("{reason}; going on from position {from}"));
            }
        }
    }
}

/// Prints pages as they come, so that a long list needs no memory.
enum Printer {
    Table(ResourceTable),
    Name,
    /// The last item waits for its comma.
    Json {
        held: Option<String>,
    },
    /// While watching: there is no end to close a document at.
    JsonLines,
    Yaml {
        any: bool,
    },
}

impl Printer {
    fn page(&mut self, resources: &[Resource]) -> Outcome {
        match self {
            Self::Table(table) => table.print(resources)?,
            Self::Name => {
                for resource in resources {
                    console::print(format_args!("{}/{}", resource.kind, resource.name))?;
                }
            }
            Self::Json { held } => {
                for resource in resources {
                    let text = serde_json::to_string_pretty(&view::resource(resource))?;
                    match held.take() {
                        None => console::print("{\n  \"items\": [")?,
                        Some(previous) => console::print(format_args!("{previous},"))?,
                    }
                    // JSON text holds no line break inside a string, so every line may be moved in.
                    *held = Some(format!("    {}", text.replace('\n', "\n    ")));
                }
            }
            Self::JsonLines => {
                for resource in resources {
                    console::print(serde_json::to_string(&view::resource(resource))?)?;
                }
            }
            Self::Yaml { any } => {
                for resource in resources {
                    if *any {
                        console::print("---")?;
                    }
                    console::print(yaml(&view::resource(resource))?)?;
                    *any = true;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, position: u64) -> Outcome {
        if let Self::Json { held } = self {
            match held.take() {
                None => console::print("{\n  \"items\": [],")?,
                Some(last) => console::print(format_args!("{last}\n  ],"))?,
            }
            console::print(format_args!("  \"position\": {position}\n}}"))?;
        }
        Ok(())
    }

    fn change(&mut self, change: &ResourceChange) -> Outcome {
        match self {
            Self::Table(table) => table.print_change(change)?,
            Self::Name => console::print(format_args!("{}/{}", change.kind, change.name))?,
            Self::Json { .. } | Self::JsonLines => {
                console::print(serde_json::to_string(&ChangeView::of(change))?)?;
            }
            Self::Yaml { any } => {
                if *any {
                    console::print("---")?;
                }
                console::print(yaml(&ChangeView::of(change))?)?;
                *any = true;
            }
        }
        Ok(())
    }
}

/// A change as machines read it.
#[derive(Serialize)]
struct ChangeView<'a> {
    position: u64,
    event_type: &'a str,
    kind: &'a str,
    name: &'a str,
    phase: Option<&'a str>,
    left_filter: bool,
    resource: Option<view::ResourceView<'a>>,
}

impl<'a> ChangeView<'a> {
    fn of(change: &'a ResourceChange) -> Self {
        Self {
            position: change.position,
            event_type: &change.event_type,
            kind: &change.kind,
            name: &change.name,
            phase: change.phase.as_deref(),
            left_filter: change.left_filter,
            resource: change.resource.as_ref().map(view::resource),
        }
    }
}

/// A table of resources, with the printer columns that a kind declares.
pub struct ResourceTable {
    columns: Columns,
    /// `/spec/cidr` and the like, one per printer column.
    pointers: Vec<String>,
    wide: bool,
    mixed: bool,
}

impl ResourceTable {
    /// A table of one kind, or of all.
    ///
    /// # Errors
    /// When the kind's columns cannot be asked for.
    pub async fn new(client: &Client, kind: Option<&str>, wide: bool) -> Result<Self, ClientError> {
        let mut header = vec!["name".to_owned(), "phase".to_owned()];
        let mut pointers = Vec::new();
        if let Some(kind) = kind {
            let answer: KindsAnswer = client.ask(operations::KINDS, json!({})).await?;
            let newest = answer.kinds.iter().filter(|k| k.kind == kind).max_by_key(|k| k.kind_version);
            for (title, pointer) in newest.map(printer_columns).unwrap_or_default() {
                header.push(title);
                pointers.push(pointer);
            }
        }
        if wide {
            header.extend(["version", "generation", "synced", "owner"].map(str::to_owned));
        }
        header.push("age".to_owned());
        if wide {
            header.push("why".to_owned());
        }
        Ok(Self { columns: Columns::new(header), pointers, wide, mixed: kind.is_none() })
    }

    /// Prints rows, under headers the first time.
    ///
    /// # Errors
    /// When stdout is closed.
    pub fn print(&mut self, resources: &[Resource]) -> std::io::Result<()> {
        if resources.is_empty() {
            return Ok(());
        }
        let rows = resources.iter().map(|resource| self.row(resource)).collect();
        self.columns.lines(rows).into_iter().try_for_each(console::print)
    }

    fn row(&self, resource: &Resource) -> Vec<String> {
        let mut row = vec![self.name(&resource.kind, &resource.name), resource.phase.clone()];
        for pointer in &self.pointers {
            let (slot, rest) = pointer.strip_prefix('/').map_or((pointer.as_str(), ""), |path| {
                path.find('/').map_or((path, ""), |end| path.split_at(end))
            });
            let document = match slot {
                "spec" => &resource.spec,
                "status" => &resource.status,
                "labels" => &resource.labels,
                _ => &Value::Null,
            };
            row.push(match document.pointer(rest) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            });
        }
        if self.wide {
            row.push(format!("v{}", resource.kind_version));
            row.push(resource.generation.to_string());
            row.push(resource.synced_generation.to_string());
            let owner = resource.owner.as_ref();
            row.push(owner.map(|owner| format!("{}/{}", owner.kind, owner.name)).unwrap_or_default());
        }
        row.push(resource.created_at.map(age::ago).unwrap_or_default());
        if self.wide {
            row.push(resource.why.clone());
        }
        row
    }

    fn print_change(&mut self, change: &ResourceChange) -> std::io::Result<()> {
        if let (Some(resource), false) = (&change.resource, change.left_filter) {
            let row = self.row(resource);
            return self.columns.lines(vec![row]).into_iter().try_for_each(console::print);
        }
        let end = if change.event_type == "Deleted" { "Deleted" } else { "(left)" };
        let row = vec![self.name(&change.kind, &change.name), end.to_owned()];
        self.columns.lines(vec![row]).into_iter().try_for_each(console::print)
    }

    /// Where kinds are mixed, a name alone says too little.
    fn name(&self, kind: &str, name: &str) -> String {
        if self.mixed { format!("{kind}/{name}") } else { name.to_owned() }
    }
}

fn printer_columns(kind: &Kind) -> Vec<(String, String)> {
    let columns = kind.manifest.get("printer_columns").and_then(Value::as_array);
    let text = |column: &Value, key: &str| column.get(key).and_then(Value::as_str).map(str::to_owned);
    columns.into_iter().flatten().filter_map(|c| Some((text(c, "name")?, text(c, "pointer")?))).collect()
}

async fn kinds(client: &Client, kind: Option<&str>, version: Option<u16>, output: Format) -> Outcome {
    let answer: KindsAnswer = client.ask(operations::KINDS, json!({})).await?;
    let mut kinds = answer.kinds;
    kinds.retain(|k| kind.is_none_or(|kind| k.kind == kind) && version.is_none_or(|v| k.kind_version == v));
    kinds.sort_by(|a, b| (&a.kind, a.kind_version).cmp(&(&b.kind, b.kind_version)));
    if kinds.is_empty()
        && let Some(kind) = kind
    {
        let version = version.map(|version| format!("/v{version}")).unwrap_or_default();
        return Err(Failure::new(Exit::NotFound, format_args!("kind/{kind}{version} does not exist")));
    }
    let name = |k: &Kind| format!("kind/{}/v{}", k.kind, k.kind_version);
    let rows = kinds
        .iter()
        .map(|k| vec![format!("{}/v{}", k.kind, k.kind_version), k.provider.clone(), reactions(k)]);
    things(&kinds, kind.is_some() && kinds.len() == 1, output, name, view::kind, || {
        render(&["name", "provider", "reactions"], rows.collect())
    })
}

fn reactions(kind: &Kind) -> String {
    let reactions = kind.manifest.get("reactions").and_then(Value::as_array);
    let names: Vec<&str> = reactions.into_iter().flatten().filter_map(|r| r.get("name")?.as_str()).collect();
    names.join(",")
}

async fn configs(client: &Client, name: Option<&str>, show: &Show) -> Outcome {
    let answer: ProviderConfigsAnswer =
        client.ask(operations::PROVIDER_CONFIGS, json!({"kind": show.kind})).await?;
    let mut configs = answer.provider_configs;
    configs.retain(|config| name.is_none_or(|name| config.name == name));
    if configs.is_empty()
        && let Some(name) = name
    {
        return Err(Failure::new(Exit::NotFound, format_args!("providerconfig/{name} does not exist")));
    }
    let rows = configs.iter().map(|config| {
        let kind = format!("{}/v{}", config.kind, config.kind_version);
        let default = if config.is_default { "yes" } else { "no" };
        vec![config.name.clone(), kind, default.to_owned(), config.data_bytes.to_string()]
    });
    things(
        &configs,
        name.is_some(),
        show.output,
        |config| format!("providerconfig/{}", config.name),
        view::provider_config,
        || render(&["name", "kind", "default", "data bytes"], rows.collect()),
    )
}

/// Prints a short list of things other than resources; `single` ones as themselves.
fn things<T>(
    things: &[T],
    single: bool,
    output: Format,
    name: impl Fn(&T) -> String,
    view: impl Fn(&T) -> Value,
    table: impl FnOnce() -> String,
) -> Outcome {
    match output {
        Format::Name => things.iter().try_for_each(|thing| console::print(name(thing)))?,
        Format::Json => {
            let mut views: Vec<Value> = things.iter().map(view).collect();
            let document = if single { views.remove(0) } else { json!({"items": views}) };
            console::print(serde_json::to_string_pretty(&document)?)?;
        }
        Format::Yaml => {
            for (index, thing) in things.iter().enumerate() {
                if index > 0 {
                    console::print("---")?;
                }
                console::print(yaml(&view(thing))?)?;
            }
        }
        Format::Table | Format::Wide if things.is_empty() => console::note("nothing found"),
        Format::Table | Format::Wide => console::print(table())?,
    }
    Ok(())
}
