//! How pipelines end, and that idle ones sleep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use super::*;

#[test]
fn stopped_under_load() {
    for shape in SHAPES {
        let pool = Pool::new(2048, 512);
        let flows = flows(1000);
        let open = |name| memory::open(name, &pool, &memory_options(2, &flows, None)).0;
        let ports = vec![open("left").into(), open("right").into()];
        let pipeline =
            Pipeline::new(&pool, ports, PipelineOptions { ring: 64, ..options(shape) }).unwrap();
        let handle = pipeline.handle();
        let stages = (0..pipeline.lookups()).map(|_| Box::new(Scatter) as Box<dyn Stage>).collect();
        let end = thread::scope(|scope| {
            let running =
                scope.spawn(|| pipeline.run(stages, &|_| (), &|event| panic!("{event:?}")));
            // It can be read while it runs.
            while handle.counters().ports[0].sent.packets < 1000 {
                thread::yield_now();
            }
            handle.stop();
            running.join().unwrap().unwrap()
        });
        assert_conserved(&pool, &end);
        assert!(end.ports[0].received.packets >= 1000);
    }
}

#[test]
fn a_stage_that_panics_stops_everything() {
    struct Bad(u32);
    impl Stage for Bad {
        fn process<'p>(
            &mut self,
            pool: &'p Pool,
            now: Instant,
            burst: &mut Vec<Packet<'p>>,
            outcome: &mut Outcome<'p>,
        ) {
            self.0 += 1;
            assert!(self.0 < 50, "burst {} is too much", self.0);
            Through.process(pool, now, burst, outcome);
        }
    }
    for shape in SHAPES {
        let pool = Pool::new(2048, 512);
        let (port, _) = memory::open("m", &pool, &memory_options(1, &flows(10), None));
        match run(&pool, vec![port.into()], options(shape), || Bad(0)) {
            Err(PipelineError::Panicked { worker, message }) => {
                assert!(worker.starts_with("router") || worker.starts_with("lookup"), "{worker}");
                assert_eq!(message, "burst 50 is too much");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A queue without packets, which counts its calls.
struct Idle(Arc<AtomicU64>);

impl<'p> Receive<'p> for Idle {
    fn receive(&mut self, _: &'p Pool, _: &mut Vec<Packet<'p>>, _: usize) -> io::Result<usize> {
        self.0.fetch_add(1, Relaxed);
        Ok(0)
    }
    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        thread::sleep(longest);
        Ok(())
    }
}

#[test]
fn idle_threads_wait_and_wake() {
    for shape in SHAPES {
        let asked = Arc::new(AtomicU64::new(0));
        let pool = Pool::new(64, 512);
        let (near, mut far) = memory::pair(&pool, 1, 16);
        let idle = port("idle", Idle(Arc::clone(&asked)), Record::default());
        let pipeline =
            Pipeline::new(&pool, vec![near.into(), idle.into()], options(shape)).unwrap();
        let handle = pipeline.handle();
        let stages = (0..pipeline.lookups()).map(|_| Box::new(Through) as Box<dyn Stage>).collect();
        thread::scope(|scope| {
            let running =
                scope.spawn(|| pipeline.run(stages, &|_| (), &|event| panic!("{event:?}")));
            thread::sleep(Duration::from_millis(60));
            let before = asked.load(Relaxed);
            thread::sleep(Duration::from_millis(100));
            // Polling without a pause would call it a hundred thousand times and more.
            assert!(asked.load(Relaxed) - before < 5000, "{shape:?}");
            let queue = &mut far.queues[0];
            for _ in 0..3 {
                let mut burst = vec![pool.take().unwrap()];
                burst[0].fill(&[7; 60]);
                queue.transmit.transmit(&pool, &mut burst).unwrap();
                while burst.is_empty() {
                    queue.receive.receive(&pool, &mut burst, 1).unwrap();
                    thread::yield_now();
                }
                assert_eq!(burst[0].bytes(), [7; 60]);
                pool.give(burst);
                thread::sleep(Duration::from_millis(5));
            }
            handle.stop();
            let end = running.join().unwrap().unwrap();
            assert_eq!(end.ports[0].sent.packets, 3);
        });
        drop(far);
        assert_eq!(pool.free(), pool.slots());
    }
}

#[test]
fn options_that_cannot_be() {
    let pool = Pool::new(64, 512);
    let shape = |receive, lookup| ThreadLayout::Staged { receive, lookup, transmit: 0 };
    let fused = ThreadLayout::Fused { threads: 1 };
    let no_queue = || Port { queues: Vec::new(), ..port("none", nothing(), Record::default()) };
    let one = || vec![port("one", nothing(), Record::default()).into()];
    let cores = Cores::List(vec![0]);
    for (ports, options, reason) in [
        (one(), PipelineOptions { burst: 0, ..options(fused) }, "1 to 256"),
        (one(), PipelineOptions { burst: 257, ..options(fused) }, "1 to 256"),
        (one(), PipelineOptions { ring: 0, ..options(fused) }, "one packet"),
        (one(), options(ThreadLayout::Fused { threads: 0 }), "at least one thread"),
        (one(), options(shape(0, 1)), "at least one thread"),
        (one(), options(shape(1, 0)), "at least one thread"),
        (one(), PipelineOptions { cores, ..options(shape(1, 1)) }, "2 threads have 1 cores"),
        (Vec::new(), options(fused), "0 ports"),
        (vec![no_queue().into()], options(fused), "none: a port has one queue"),
    ] {
        let error = run(&pool, ports, options, || Through).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let pipeline = Pipeline::new(&pool, one(), options(fused)).unwrap();
    let error = pipeline.run(Vec::new(), &|_| (), &|_| ()).unwrap_err().to_string();
    assert!(error.contains("there are 0 stages"), "{error}");
}
