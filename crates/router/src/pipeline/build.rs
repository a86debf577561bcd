//! Builds a pipeline: threads, their queues, and the rings between them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::bell::Bell;
use super::clock::Clock;
use super::counters::WorkerCounters;
use super::event::Events;
use super::exits::{ExitPath, Exits, Transmitter};
use super::hold::{Hold, HoldOptions};
use super::renew::{Inbox, Renewer};
use super::ring::ring;
use super::source::ReceiveQueue;
use super::worker::{Lookup, Spread as Spreading, Worker};
use super::{
    Attached, Cores, PipelineError, PipelineOptions, Resolve, Role, Shared, Spread, Stage,
    ThreadLayout, WorkerInfo, cores,
};
use crate::Pool;
use crate::forward::{Outcome, TOGETHER};
use crate::port::Queue;

/// The threads of the options.
pub(super) fn workers(
    ports: &[Attached<'_>],
    options: &PipelineOptions,
) -> Result<Vec<WorkerInfo>, PipelineError> {
    let fail = |what: String| Err(PipelineError::Options(what));
    if !(1..=256).contains(&options.burst) {
        return fail(format!("a burst of {} packets: 1 to 256 are possible", options.burst));
    }
    if options.ring == 0 {
        return fail("a ring has room for one packet at least".to_owned());
    }
    if ports.is_empty() || ports.len() > usize::from(u16::MAX / 2) {
        return fail(format!(
            "{} ports: one is needed, and {} are possible",
            ports.len(),
            u16::MAX / 2
        ));
    }
    if let Some(empty) = ports.iter().find(|attached| attached.port.queues.is_empty()) {
        return fail(format!("{}: a port has one queue at least", empty.port.name));
    }
    let roles = roles(options.shape);
    let counts =
        [|role: &Role| role.receives, |role: &Role| role.looks_up, |role: &Role| role.transmits];
    if counts.iter().any(|is| !roles.iter().any(|(_, role)| is(role))) {
        return fail("at least one thread must receive, and one look up".to_owned());
    }
    let chosen = match &options.cores {
        Cores::Free => vec![None; roles.len()],
        Cores::Auto => {
            let lookups: Vec<bool> = roles.iter().map(|(_, role)| role.looks_up).collect();
            cores::assign(&cores::groups(), &lookups)
        }
        Cores::List(list) if list.len() < roles.len() => {
            let (cores, threads) = (list.len(), roles.len());
            return fail(format!("{threads} threads have {cores} cores: name one for each"));
        }
        Cores::List(list) => {
            cores::check(list).map_err(PipelineError::Options)?;
            list.iter().copied().map(Some).collect()
        }
    };
    let infos = roles.into_iter().zip(chosen).map(|((name, role), core)| {
        let bell = Arc::new(Bell::new()?);
        let counters = Arc::new(WorkerCounters::new(ports.len()));
        Ok(WorkerInfo { name, core, role, bell, counters })
    });
    infos.collect::<std::io::Result<_>>().map_err(PipelineError::System)
}

fn roles(shape: ThreadLayout) -> Vec<(String, Role)> {
    let some = |count: usize, name: &'static str, receives, looks_up, transmits| {
        let role = Role { receives, looks_up, transmits };
        (0..count).map(move |at| (format!("{name} {at}"), role))
    };
    match shape {
        ThreadLayout::Fused { threads } => some(threads, "router", true, true, true).collect(),
        ThreadLayout::Staged { receive, lookup, transmit } => {
            some(receive, "receive", true, false, false)
                .chain(some(lookup, "lookup", false, true, transmit == 0))
                .chain(some(transmit, "transmit", false, false, true))
                .collect()
        }
    }
}

/// The numbers of the threads that do something.
pub(super) fn those(shared: &Shared, does: impl Fn(&Role) -> bool) -> Vec<usize> {
    let all = shared.workers.iter().enumerate();
    all.filter(|(_, worker)| does(&worker.role)).map(|(at, _)| at).collect()
}

/// The thread of each half. The queues of a port are distributed over the threads, and so are ports with one queue.
pub(super) fn owner(threads: &[usize], port: usize, queue: usize) -> usize {
    threads[(port + queue) % threads.len()]
}

/// The threads with their queues, connected.
pub(super) fn connect<'p, 'r>(
    pool: &'p Pool,
    ports: Vec<Attached<'p>>,
    options: &PipelineOptions,
    shared: &'r Shared,
    renewer: &'r Renewer<'p>,
    (stages, resolve, events): (Vec<Box<dyn Stage + 'r>>, &'r Resolve<'r>, &'r Events<'r>),
    started: Instant,
) -> Vec<Worker<'p, 'r>> {
    let receivers = those(shared, |role| role.receives);
    let lookups = those(shared, |role| role.looks_up);
    let senders = those(shared, |role| role.transmits);
    let queues: Vec<usize> = ports.iter().map(|attached| attached.port.queues.len()).collect();
    let by_flow = match options.spread {
        Spread::Auto => queues.iter().sum::<usize>() < lookups.len(),
        Spread::Queue => false,
        Spread::Flow => true,
    };
    let blank = |(info, inbox): (&'r WorkerInfo, &'r Inbox<'p>)| Worker {
        pool,
        shared,
        inbox,
        bell: Arc::clone(&info.bell),
        counters: Arc::clone(&info.counters),
        sources: Vec::new(),
        spread: Spreading { rings: Vec::new(), by_flow, sorted: Vec::new() },
        inputs: Vec::new(),
        lookup: None,
        feeds: Vec::new(),
        exits: Exits::new(
            pool,
            Clock::new(started),
            Arc::clone(&info.counters),
            events,
            &shared.ports,
            vec![ExitPath::Nowhere; 2 * ports.len()],
        ),
        only_sends: false,
        most: options.burst,
        spin: options.spin.as_nanos() as u64,
        burst: Vec::with_capacity(options.burst.max(TOGETHER)),
        leaving: (0..2 * ports.len()).map(|_| Vec::with_capacity(options.burst)).collect(),
        stamps: Vec::with_capacity(options.burst),
    };
    let mut workers: Vec<Worker<'p, 'r>> =
        shared.workers.iter().zip(&*renewer.inboxes).map(blank).collect();
    let is_shared: Vec<bool> = ports.iter().map(|attached| attached.port.is_shared).collect();
    let has_host: Vec<bool> = ports.iter().map(|attached| attached.host.is_some()).collect();
    share_out(&mut workers, ports, &receivers, &senders);

    for &from in receivers.iter().filter(|&&at| !shared.workers[at].role.looks_up) {
        for &to in &lookups {
            let (sender, receiver) = ring(options.ring, &shared.workers[to].bell);
            workers[from].spread.rings.push(sender);
            workers[from].spread.sorted.push(Vec::with_capacity(options.burst));
            workers[to].inputs.push(receiver);
        }
    }
    for ((number, &at), stage) in lookups.iter().enumerate().zip(stages) {
        if let Some(reasons) = stage.counters() {
            let _ = shared.workers[at].counters.reasons.set(reasons);
        }
        let HoldOptions { each, all, nanos } = options.hold;
        let hold = Hold::new(HoldOptions { each, all: all.div_ceil(lookups.len()), nanos });
        let outcome = Outcome::default();
        workers[at].lookup =
            Some(Lookup { stage, outcome, hold, resolve, retry_at: 0, asked_at: 0 });
        let mut rings = HashMap::new();
        for port in 0..queues.len() {
            let hosts = queues.len() + port;
            let exits = [
                (port, owner(&senders, port, number % queues[port])),
                (hosts, owner(&senders, port, 0)),
            ];
            for (exit, owner) in exits {
                if exit == hosts && (is_shared[port] || !has_host[port]) {
                    let way = if is_shared[port] { ExitPath::Shared } else { ExitPath::Nowhere };
                    workers[at].exits.ways[exit] = way;
                } else if matches!(workers[at].exits.ways[exit], ExitPath::Nowhere) {
                    let to = *rings.entry(owner).or_insert_with(|| {
                        let (sender, receiver) = ring(options.ring, &shared.workers[owner].bell);
                        workers[owner].feeds.push(receiver);
                        workers[at].exits.rings.push(sender);
                        workers[at].exits.rings.len() - 1
                    });
                    workers[at].exits.ways[exit] = ExitPath::Ring(to);
                }
            }
        }
    }
    workers
}

/// Gives the halves of the queues to their owners.
fn share_out<'p>(
    workers: &mut [Worker<'p, '_>],
    ports: Vec<Attached<'p>>,
    receivers: &[usize],
    senders: &[usize],
) {
    let (count, mut number) = (ports.len(), 0);
    for (port, Attached { port: opened, host }) in ports.into_iter().enumerate() {
        let is_shared = opened.is_shared;
        let mut host = host;
        for (queue, Queue { receive, transmit }) in opened.queues.into_iter().enumerate() {
            let source = ReceiveQueue::new(port as u16, queue, number, receive);
            workers[owner(receivers, port, queue)].sources.push(source);
            number += 1;

            let exits = &mut workers[owner(senders, port, queue)].exits;
            let mut add = |exit: usize, to_host, half, from_host| {
                let at = exits.transmitters.len();
                if exits.ways[exit] == ExitPath::Nowhere {
                    exits.ways[exit] = ExitPath::Own(at);
                }
                let (has_failed, is_dirty) = (false, false);
                exits.transmitters.push(Transmitter {
                    port,
                    queue,
                    to_host,
                    half,
                    from_host,
                    lost_before: 0,
                    has_failed,
                    is_dirty,
                });
            };
            match host.take() {
                // Packets from the machine are sent by the port's first half, which this thread has.
                Some(Queue { receive, transmit: to_host }) => {
                    add(port, false, transmit, Some(receive));
                    if !is_shared {
                        add(count + port, true, to_host, None);
                    }
                }
                None => add(port, false, transmit, None),
            }
        }
    }
}
