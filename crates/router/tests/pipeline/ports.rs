//! Ports that fail, are full, or have a host.

use super::*;

fn frames(count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|at| vec![at; 60]).collect()
}

/// Runs it with one thread, and returns the events as texts.
fn events_of<'p>(
    pool: &'p Pool,
    ports: Vec<Attached<'p>>,
    stage: impl Stage + 'p,
) -> (CounterValues, Vec<String>) {
    let pipeline = Pipeline::new(pool, ports, options(ThreadLayout::Fused { threads: 1 })).unwrap();
    let events = Mutex::new(Vec::new());
    let on_event = |event: Event| {
        events.lock().unwrap().push(match event {
            Event::Failed { port, error } => format!("{port} fails: {error}"),
            Event::Recovered { port } => format!("{port} works"),
            Event::Over { port, queue, error: None } => format!("{port} {queue} is over"),
            Event::Over { port, error: Some(error), .. } => format!("{port} breaks off: {error}"),
            Event::NotPinned { .. } => unreachable!("threads are not pinned here"),
        });
    };
    let end = pipeline.run(vec![Box::new(stage)], &|_| (), &on_event).unwrap();
    (end, events.into_inner().unwrap())
}

#[test]
fn a_link_that_goes_down_and_up() {
    let down = || Step::Error(io::ErrorKind::NetworkDown);
    let mut steps: VecDeque<_> = frames(2).into_iter().map(Step::Frame).collect();
    steps.extend([down(), down(), Step::Nothing, Step::Frame(vec![9; 60])]);
    let (pool, record) = (Pool::new(64, 512), Record::default());
    let ports = vec![port("link", Script(steps), record.clone()).into()];
    let (end, events) = events_of(&pool, ports, Through);
    assert_conserved(&pool, &end);
    assert_eq!(record.frames(), [vec![0; 60], vec![1; 60], vec![9; 60]]);
    assert_eq!(events, ["link fails: network down", "link works", "link 0 is over"]);
}

/// Takes two packets of each burst, and two more after it was flushed; bursts whose packets are numbered from 6 to 11
/// fail.
struct Narrow(Record);

impl<'p> Transmit<'p> for Narrow {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        if (6..12).contains(&burst[0].bytes()[0]) {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        let count = burst.len().min(2);
        let mut taken: Vec<_> = burst.drain(..count).collect();
        self.0.transmit(pool, &mut taken)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_port_that_is_full_or_fails() {
    let pool = Pool::new(64, 512);
    // Three bursts of six packets.
    let mut steps = VecDeque::new();
    for frame in frames(18) {
        if frame[0] > 0 && frame[0] % 6 == 0 {
            steps.push_back(Step::Nothing);
        }
        steps.push_back(Step::Frame(frame));
    }
    let record = Record::default();
    let narrow = Narrow(record.clone());
    let (end, events) =
        events_of(&pool, vec![port("narrow", Script(steps), narrow).into()], Through);
    assert_conserved(&pool, &end);
    let first: Vec<u8> = record.frames().iter().map(|frame| frame[0]).collect();
    assert_eq!(first, [0, 1, 2, 3, 12, 13, 14, 15]);
    assert_eq!((end.lost(Loss::PortFull), end.lost(Loss::PortFailed)), (4, 6));
    assert_eq!(events, ["narrow fails: network down", "narrow 0 is over", "narrow works"]);
}

#[test]
fn packets_of_the_machine_itself() {
    struct ToHost;
    impl Stage for ToHost {
        fn process<'p>(
            &mut self,
            _: &'p Pool,
            _: Instant,
            burst: &mut Vec<Packet<'p>>,
            outcome: &mut Outcome<'p>,
        ) {
            outcome.host.append(burst);
        }
    }
    for shape in SHAPES {
        let pool = Pool::new(256, 512);
        let (link, host) = (Record::default(), Record::default());
        let says = [vec![70; 60], vec![71; 60]];
        let tap = Queue {
            receive: Box::new(Script::frames(says.clone())),
            transmit: Box::new(host.clone()),
        };
        let shared = Port {
            is_shared: true,
            ..port("shared", Script::frames(frames(7)), Record::default())
        };
        let ports = vec![
            Attached {
                port: port("link", Script::frames(frames(5)), link.clone()),
                host: Some(tap),
            },
            shared.into(),
            port("bare", Script::frames(frames(3)), Record::default()).into(),
        ];
        let end = run(&pool, ports, options(shape), || ToHost).unwrap();
        assert_conserved(&pool, &end);
        assert_eq!(host.frames(), frames(5));
        assert_eq!(link.frames(), says, "{shape:?}");
        assert_eq!((end.shared, end.lost(Loss::NoHost)), (7, 3));
        let counted = &end.ports[0];
        assert_eq!(
            (counted.from_host.packets, counted.to_host.packets, counted.sent.bytes),
            (2, 5, 120)
        );
    }
}
