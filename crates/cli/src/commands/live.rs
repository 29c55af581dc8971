//! `--live`: the page of a run under way, and that of a finished folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use zellige_engine::error::{Error, Result};
use zellige_engine::run::Summary;
use zellige_engine::sim::{Ending, Outcome, Plan, Solver};
use zellige_live::{Address, Command, Hub, RunNames, Server};

use crate::report::{self, VERSION};

/// Time that clients have at the end of a run to ask for the last pictures.
pub(crate) const FAREWELL: Duration = Duration::from_secs(3);

/// Page at work.
pub(crate) struct Live {
    hub: Arc<Hub>,
    server: Server,
}

/// Names of a run.
pub(crate) fn names<S: Solver>(config: &S::Config, folder: &Path, device: &str, plan: &Plan, steer: bool) -> RunNames {
    let mut commands = Vec::new();
    if steer {
        commands.extend([Command::Save, Command::Stop]);
        commands.extend(S::section(config).map(|_| Command::Next));
    }
    let names = RunNames {
        solver: S::NAME.into(),
        device: device.into(),
        step: S::STEP.into(),
        item: S::ITEM.into(),
        commands,
        section: S::section(config).map(Into::into),
        ..of_folder(folder)
    };
    names.planned(plan)
}

/// Names of a folder of results.
pub(crate) fn of_folder(folder: &Path) -> RunNames {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    RunNames {
        name: whole.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        version: VERSION.into(),
        folder: whole.display().to_string(),
        ..RunNames::default()
    }
}

/// Says where a page is.
pub(crate) fn tell_address(server: &Server) {
    report::line("live", &server.url());
    match server.tunnel() {
        Some(tunnel) => report::line("", &format!("from another machine first: {tunnel}")),
        None => report::note("the live page is open to the network, without encryption: who has its address sees the run"),
    }
}

impl Live {
    /// Starts a page, and says where.
    pub(crate) fn start(address: &Address, names: RunNames) -> Result<Self> {
        let hub = Arc::new(Hub::new(names));
        let server = Server::start(address, hub.clone())?;
        tell_address(&server);
        Ok(Self { hub, server })
    }

    /// Address, and the command that brings it to another machine; none where the page is open to the network.
    pub(crate) fn address(&self) -> (String, Option<String>) {
        (self.server.url(), self.server.tunnel())
    }

    /// Port that it is served at.
    pub(crate) fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// State that the page shows.
    pub(crate) fn hub(&self) -> Arc<Hub> {
        self.hub.clone()
    }

    /// Tells the time that the page has cost the run.
    pub(crate) fn tell_cost(&self, cost: Option<String>) {
        if let Some(cost) = cost {
            report::line("live", &cost);
            self.hub.notice(&cost);
        }
    }

    /// Tells how the run ended.
    pub(crate) fn tell_end(&self, result: &Result<Summary>) {
        match result {
            Ok(summary) => {
                self.hub.stages(&summary.stages);
                for check in &summary.checks {
                    self.hub.notice(&format!("check: {check} {}", if check.ok { "ok" } else { "NOT OK" }));
                }
                self.tell_outcome(&summary.outcome, summary.verdict());
            }
            Err(error) => self.tell_error(error),
        }
    }

    /// Tells the error that the run ended with.
    pub(crate) fn tell_error(&self, error: &Error) {
        self.hub.end(if error.exit_code() >= 75 { "stopped" } else { "failed" }, &error.to_string());
    }

    /// Tells how the steps ended, and why the result is not to be trusted, if so.
    pub(crate) fn tell_outcome(&self, outcome: &Outcome, verdict: Option<String>) {
        let word = match (outcome.ending, &verdict) {
            (Ending::Failed, _) | (_, Some(_)) => "failed",
            (Ending::Limited, None) => "limited",
            (Ending::Finished, None) => "finished",
        };
        self.hub.end(word, &verdict.unwrap_or_else(|| format!("{}: {}", outcome.status.replace('_', " "), outcome.message)));
    }

    /// Sends the clients away, once they have what there is.
    pub(crate) fn close(self) {
        self.server.close(FAREWELL);
    }
}
