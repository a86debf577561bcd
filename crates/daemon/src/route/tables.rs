//! The tables by which packets are forwarded: one that does not change, or tables of sources, one or one for each VRF.

use std::sync::Arc;

use fibula_classify::text::RuleText;
use fibula_core::{NextHops, Vrf};
use fibula_feeds::Positions;
use fibula_fib::{Fib, FibOptions};
use fibula_rib::Live;
use fibula_router::control::{Control, index_of_port};
use fibula_router::forward::TableByPort;
use fibula_router::pipeline::{Guided, Routing, Stage};
use fibula_router::{ForwardOptions, Forwarder};
use tracing::info;

use super::fast::hash_seed;
use super::rules::{self, Book};
use super::{RouteOptions, next_hops};
use crate::config::RouteConfig;
use crate::{DaemonError, live, named_table};

/// The work of threads that look up.
type Stages = Vec<Box<dyn Stage>>;

/// The tables.
pub enum Tables {
    Live(Arc<Live>, Positions),
    Static(Fib, Vec<NextHops>),
}

impl Tables {
    pub fn open(options: &mut RouteOptions, ports: usize) -> Result<Self, DaemonError> {
        let config = &options.config;
        if config.router.table.is_empty() {
            let (live, positions) = live::start(&config.feeds, &options.fib)?;
            return Ok(Self::Live(Arc::new(live), positions));
        }
        let fib = match options.table.take() {
            Some(fib) => fib,
            None => named(config, &options.fib)?,
        };
        // The interface of a port may be another one later; its number stays.
        let interface = |number: usize| {
            let number = u16::try_from(number).ok().filter(|_| number < ports)?;
            Some(index_of_port(number))
        };
        let file = config.router.next_hops.as_deref();
        let next_hops = next_hops::of_table(fib.columns(), file, interface)?;
        Ok(Self::Static(fib, next_hops))
    }

    pub fn live(&self) -> Option<Arc<Live>> {
        match self {
            Self::Live(live, _) => Some(Arc::clone(live)),
            Self::Static(..) => None,
        }
    }

    /// One for each thread that looks up, and the book of their rules.
    pub fn stages(
        &self,
        config: &RouteConfig,
        control: &Control,
        count: usize,
    ) -> Result<(Stages, Option<Book>), DaemonError> {
        let forward = ForwardOptions {
            icmp: config.pipeline.icmp,
            icmp_rate: config.pipeline.icmp_rate,
            hash_seed: hash_seed(),
            ..ForwardOptions::default()
        };
        let forwarder = || Forwarder::new(forward.clone());
        let Some(RuleText { rules, .. }) = rules::read(config)? else {
            let stages = self.without_rules(config, control, count, &forwarder)?;
            return Ok((stages, None));
        };
        match self {
            Self::Live(live, _) => {
                let (mut vrfs, by_port) = of_ports(config, live);
                rules::add_vrfs(&rules, live, &mut vrfs);
                let (known, names) = (vrfs.clone(), Arc::clone(live));
                let number = move |name: &str| known.iter().position(|vrf| *vrf == names.vrf(name));
                let (book, policies) =
                    Book::open(config, rules, &by_port, Box::new(number), count)?;
                let stage = |policy| -> Result<Box<dyn Stage>, DaemonError> {
                    let views = |vrf: &Vrf| control.views(live, *vrf);
                    let tables: Vec<_> = vrfs.iter().map(views).collect::<Result<_, _>>()?;
                    Ok(Box::new(Guided::new(tables, policy, forwarder())))
                };
                Ok((policies.into_iter().map(stage).collect::<Result<_, _>>()?, Some(book)))
            }
            Self::Static(fib, next_hops) => {
                let views = control.static_views(fib, next_hops.iter().cloned())?;
                let (book, policies) = Book::open(config, rules, &[], Box::new(|_| None), count)?;
                let stage = |policy| -> Box<dyn Stage> {
                    Box::new(Guided::new([views.clone()], policy, forwarder()))
                };
                Ok((policies.into_iter().map(stage).collect(), Some(book)))
            }
        }
    }

    fn without_rules(
        &self,
        config: &RouteConfig,
        control: &Control,
        count: usize,
        forwarder: &dyn Fn() -> Forwarder,
    ) -> Result<Stages, DaemonError> {
        match self {
            Self::Live(live, _) => {
                let (vrfs, by_port) = of_ports(config, live);
                let stage = |_| -> Result<Box<dyn Stage>, DaemonError> {
                    let views = |vrf: &Vrf| control.views(live, *vrf);
                    Ok(match &vrfs[..] {
                        [only] => Box::new(Routing::new(views(only)?, forwarder())),
                        several => {
                            let tables: Vec<_> =
                                several.iter().map(views).collect::<Result<_, _>>()?;
                            let policy = TableByPort::new(by_port.clone());
                            Box::new(Guided::new(tables, policy, forwarder()))
                        }
                    })
                };
                (0..count).map(stage).collect()
            }
            Self::Static(fib, next_hops) => {
                let views = control.static_views(fib, next_hops.iter().cloned())?;
                let stage =
                    |_| -> Box<dyn Stage> { Box::new(Routing::new(views.clone(), forwarder())) };
                Ok((0..count).map(stage).collect())
            }
        }
    }
}

/// The table that the configuration names.
fn named(config: &RouteConfig, fib: &FibOptions) -> Result<Fib, DaemonError> {
    let names = config.feeds.tables.engine.iter().map(String::as_str);
    named_table::open(&config.router.table, fib.clone().engines(names))
}

/// The VRFs of the ports, and the place of each port's among them.
fn of_ports(config: &RouteConfig, live: &Live) -> (Vec<Vrf>, Vec<u16>) {
    let (mut vrfs, mut by_port) = (Vec::new(), Vec::new());
    for port in &config.ports {
        let name = config.table_of(port);
        let vrf = name.as_deref().map_or(0, |name| live.vrf(name));
        if let Some(name) = &name {
            info!("{}: received packets are forwarded by {name}", port.port);
        }
        let at = vrfs.iter().position(|known| *known == vrf).unwrap_or_else(|| {
            vrfs.push(vrf);
            vrfs.len() - 1
        });
        by_port.push(at as u16);
    }
    (vrfs, by_port)
}
