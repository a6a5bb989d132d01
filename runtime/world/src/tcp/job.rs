//! Which rank of which job this process is, as its launcher says it in the environment.

use crate::WorldError;
use std::ffi::OsString;

/// Where the ranks of a job meet is one port above `MASTER_PORT`: `torchrun` has taken that one for a store of its own.
const ABOVE_MASTER_PORT: u16 = 1;

/// More ranks than that are a variable gone wrong.
const MAX_RANKS: usize = 1 << 16;

/// A process that is one rank of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Which one.
    pub(crate) rank: usize,
    /// How many there are.
    pub(crate) ranks: usize,
    /// Which one of its host, where the launcher says it.
    pub(crate) local_rank: Option<usize>,
    /// Where they meet: rank 0 listens there. Empty for one rank, which meets nobody.
    pub(crate) address: Address,
    /// What the ranks of this job have in common and those of others have not, as far as the launcher says it. Those
    /// that come with another one are sent away.
    pub(crate) token: String,
}

/// A host and a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// A name, or an address of IPv4 or IPv6 without brackets.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The variables of one launcher.
struct Launcher {
    rank: &'static str,
    ranks: &'static [&'static str],
    local_rank: &'static [&'static str],
    /// What its jobs are told apart by: all that are set.
    token: &'static [&'static str],
}

/// The innermost first: `torchrun` and `mpirun` run in allocations of Slurm, whose variables their processes have too.
///
/// `TORCHELASTIC_RESTART_COUNT` is no part of a token: agents on different hosts count restarts each for itself. Nor is
/// Slurm's step where ranks are numbered by hand, as each host may then have a step of its own.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        rank: "RANK",
        ranks: &["WORLD_SIZE"],
        local_rank: &["LOCAL_RANK"],
        token: &["TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"],
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        token: &["PMIX_NAMESPACE", "SLURM_JOB_ID"],
    },
    // MPICH and what is made of it, Intel MPI among them.
    Launcher {
        rank: "PMI_RANK",
        ranks: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        token: &["SLURM_JOB_ID"],
    },
    SLURM,
];

const SLURM: Launcher = Launcher {
    rank: "SLURM_PROCID",
    ranks: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    local_rank: &["SLURM_LOCALID"],
    token: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
};

/// Variables with a value. An empty one is as good as none.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Variables<F> {
    fn get(&self, name: &str) -> Option<OsString> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The first that is set, with its value as text.
    fn first(&self, names: &[&'static str]) -> Result<Option<(&'static str, String)>, WorldError> {
        let Some((name, value)) = names.iter().find_map(|name| Some((*name, self.get(name)?)))
        else {
            return Ok(None);
        };
        match value.into_string() {
            Ok(value) => Ok(Some((name, value))),
            Err(value) => Err(wrong(name, &value.to_string_lossy(), "it has to be text")),
        }
    }

    /// The first that is set, as a number.
    fn number(&self, names: &[&'static str]) -> Result<Option<(&'static str, usize)>, WorldError> {
        let Some((name, value)) = self.first(names)? else {
            return Ok(None);
        };
        // `parse` takes a sign too.
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        match value.parse().ok().filter(|_| digits) {
            Some(number) => Ok(Some((name, number))),
            None => Err(wrong(name, &value, "it has to be a number, as in 3")),
        }
    }

    /// What tells the job from others.
    fn token(&self, names: &[&'static str]) -> String {
        let names = if self.has("GEMM_JOB") { &["GEMM_JOB"] } else { names };
        let value = |name: &&str| self.get(name).map(|value| value.to_string_lossy().into_owned());
        names.iter().filter_map(value).collect::<Vec<_>>().join("/")
    }

    /// Where the ranks meet.
    fn address(&self, named: &'static str, rank: usize) -> Result<Address, WorldError> {
        if let Some((name, value)) = self.first(&["GEMM_RENDEZVOUS"])? {
            return parse(&value).ok_or_else(|| {
                wrong(
                    name,
                    &value,
                    "it has to be a host and a port where rank 0 can listen, as in node0:29400",
                )
            });
        }
        let Some((master, host)) = self.first(&["MASTER_ADDR"])? else {
            let need = if named == SLURM.rank {
                "the ranks need a place to meet: export GEMM_RENDEZVOUS=$(scontrol show hostnames \
                 $SLURM_JOB_NODELIST | head -n 1):29400, or MASTER_ADDR and MASTER_PORT, before srun"
            } else {
                "the ranks need a place to meet: set GEMM_RENDEZVOUS to the host of rank 0 and a free port of it, as \
                 in node0:29400, or MASTER_ADDR and MASTER_PORT"
            };
            return Err(wrong(named, &rank.to_string(), need));
        };
        let Some((name, port)) = self.number(&["MASTER_PORT"])? else {
            return Err(wrong(master, &host, "with it MASTER_PORT has to be set"));
        };
        let above = u16::try_from(port).ok().filter(|port| *port > 0);
        match above.and_then(|port| port.checked_add(ABOVE_MASTER_PORT)) {
            Some(port) => Ok(Address { host: bare(&host).to_owned(), port }),
            None => {
                let need =
                    "it has to be a port from 1 to 65534; the ranks meet at the one above it";
                Err(wrong(name, &port.to_string(), need))
            }
        }
    }
}

fn wrong(variable: &'static str, value: &str, need: &str) -> WorldError {
    WorldError::Environment { variable, value: value.to_owned(), need: need.to_owned() }
}

/// An address of IPv6 without its brackets.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// A host and a port.
fn parse(text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    // Without brackets nobody knows where an address of IPv6 ends.
    let brackets = bare(host) != host;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = bare(host);
    let well = !host.is_empty()
        && (brackets || !host.contains(':'))
        && !host.contains(char::is_whitespace);
    well.then(|| Address { host: host.to_owned(), port })
}

impl Job {
    /// What the environment of this process says; `None` where it says that there is no job.
    ///
    /// # Errors
    /// See [`Job::from`].
    pub(crate) fn from_env() -> Result<Option<Self>, WorldError> {
        Self::from(|name| std::env::var_os(name))
    }

    /// What an environment says: `RANK`, `WORLD_SIZE` and `LOCAL_RANK` (`torchrun`, or by hand), those of Open MPI, of
    /// MPICH, of Slurm, in this order. The ranks meet at `GEMM_RENDEZVOUS`, `host:port`, or else at `MASTER_ADDR` on the
    /// port above `MASTER_PORT`; one rank alone needs neither. `GEMM_JOB` is what tells jobs apart, or else what the
    /// launcher calls them.
    ///
    /// # Errors
    /// [`WorldError::Environment`] where a variable is no number, or no address, or where others have to be set beside
    /// it and are not.
    pub(crate) fn from(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, WorldError> {
        let variables = Variables(get);
        // A batch script and an allocation's shell have Slurm's variables too, but are none of its tasks: only in a step
        // there are those.
        let step = !variables.has("SLURM_JOB_ID") || variables.has("SLURM_STEP_ID");
        let says_rank = |launcher: &&Launcher| {
            variables.has(launcher.rank) && (launcher.rank != SLURM.rank || step)
        };
        let Some(launcher) = LAUNCHERS.iter().find(says_rank) else {
            // Slurm's number of tasks stands in allocations without tasks.
            let others = LAUNCHERS.iter().filter(|launcher| launcher.rank != SLURM.rank);
            for launcher in others {
                if let Some((name, ranks)) = variables.first(launcher.ranks)? {
                    let need = format!(
                        "with it {} has to be set, to which of the ranks this one is",
                        launcher.rank
                    );
                    return Err(wrong(name, &ranks, &need));
                }
            }
            return Ok(None);
        };
        let Some((_, rank)) = variables.number(&[launcher.rank])? else {
            return Ok(None);
        };
        let Some((name, ranks)) = variables.number(launcher.ranks)? else {
            let last = launcher.ranks.last().copied().unwrap_or_default();
            let need = format!("with it {last} has to be set, to how many ranks there are");
            return Err(wrong(launcher.rank, &rank.to_string(), &need));
        };
        if !(1..=MAX_RANKS).contains(&ranks) {
            let need = format!("it has to be a number from 1 to {MAX_RANKS}");
            return Err(wrong(name, &ranks.to_string(), &need));
        }
        if rank >= ranks {
            let need = format!("with {name}={ranks} it has to be less than {ranks}");
            return Err(wrong(launcher.rank, &rank.to_string(), &need));
        }
        let local_rank = variables.number(launcher.local_rank)?.map(|(_, local_rank)| local_rank);
        let address = match ranks {
            1 => Address::default(),
            _ => variables.address(launcher.rank, rank)?,
        };
        let token = variables.token(launcher.token);
        Ok(Some(Self { rank, ranks, local_rank, address, token }))
    }
}
