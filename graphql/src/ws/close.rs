//! Why a connection is closed, in the protocol's numbers.

use axum::extract::ws::CloseFrame;

/// A close code with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Close {
    /// The peer closed, vanished or cannot be written to: nothing left to say.
    Gone,
    /// The process goes down.
    GoingAway,
    /// A message that the protocol does not know.
    Invalid(String),
    /// An operation before the connection was acknowledged.
    Unauthorized,
    /// The peer speaks another subprotocol, or named none.
    SubprotocolNotAcceptable,
    InitialisationTimeout,
    SubscriberExists(String),
    TooManyInitialisationRequests,
}

impl Close {
    /// The frame to send; None when nobody is there to read it.
    pub fn frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::GoingAway => (1001, "Going away".to_owned()),
            Self::Invalid(why) => (4400, why.clone()),
            Self::Unauthorized => (4401, "Unauthorized".to_owned()),
            Self::SubprotocolNotAcceptable => (4406, "Subprotocol not acceptable".to_owned()),
            Self::InitialisationTimeout => (4408, "Connection initialisation timeout".to_owned()),
            Self::SubscriberExists(id) => (4409, format!("Subscriber for {id} already exists")),
            Self::TooManyInitialisationRequests => (4429, "Too many initialisation requests".to_owned()),
        };
        Some(CloseFrame { code, reason: clip(reason).into() })
    }
}

/// A close frame carries at most 123 bytes of reason.
fn clip(mut reason: String) -> String {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.truncate(end);
    reason
}
