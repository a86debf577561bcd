"""`fibula route` between real kernels, in network namespaces: ping, traceroute, UDP, TCP, path MTU discovery, two links that share
flows, one that fails, restarts; every packet is counted.

    python3 crates/cli/tests/router [--port KIND] [--daemons] [--large] [--demo] [--if-possible]

It needs root and iproute2; with --daemons, frr and bird2 too. It says so where they are missing. The sockets at both ends are
Python's, so that nothing of the router checks itself.
"""

import argparse
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent / "live"))

import lab  # noqa: E402
import learned  # noqa: E402
import steps  # noqa: E402
import taps  # noqa: E402
import town  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(prog="router", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--port", action="append", metavar="KIND", help="afxdp, afpacket, xdp or, in builds with that feature, dpdk; may be repeated (default: all but dpdk)")
    parser.add_argument("--daemons", action="store_true", help="routes come from BIRD by way of FRR, not from the kernel")
    parser.add_argument("--large", action="store_true", help="with --daemons: 100,000 + 20,000 routes, not 1,000 + 200")
    parser.add_argument("--packets", type=int, default=1000, help="datagrams of each kind (default: %(default)s)")
    parser.add_argument("--demo", action="store_true", help="say what happens, for a person who watches")
    parser.add_argument("--if-possible", action="store_true", help="end with success where it cannot run, and say why")
    parser.add_argument("--until", metavar="STEP", help="end after this step, for work on the test")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def say(text):
    print(f"router: {text}", file=sys.stderr, flush=True)


def main():
    options = arguments()
    if not lab.begin(options, say, "the test of the router", () if options.daemons else ("frr", "bird2")):
        return 0 if options.if_possible else 1
    begin = time.monotonic()
    fibula = None
    try:
        if options.demo:
            say(town.__doc__)
        town.build()
        frr, source = None, ["--kernel"]
        if options.daemons:
            frr, source = learned.start(options, say)
        else:
            town.kernel_routes()
        for kind in options.port or ["afxdp", "afpacket", "xdp"]:
            if kind == "xdp" and not options.port and not town.Fibula(kind, source).is_built():
                say("SKIPPED, xdp ports: this fibula was built without clang")
                continue
            town.prepare(kind)
            fibula = town.Fibula(kind, source)
            if options.demo:
                say(f"starting: {' '.join(fibula.daemon.command)}")
            say(f"ports {kind}; forwards after {fibula.start():.2f} s")
            if options.demo:
                say("the kernel does not forward; fibula does. What it says:\n" + fibula.daemon.tail())
            here = steps.Here(fibula, options.packets, frr)
            if options.daemons:
                learned.check(here, say)
            steps.run_all(here, say, options.until)
            fibula.stop()
        if not (options.demo or options.until or fibula.is_other):
            taps.run_all(say)
    except KeyboardInterrupt:
        say("interrupted: nothing is left of it")
        return 130
    except lab.Failed as failed:
        say(f"FAILED after {time.monotonic() - begin:.1f} s: {failed}")
        if fibula:
            fibula.daemon.stop()  # it says what it counted
            print(fibula.daemon.tail(60), file=sys.stderr)
        return 1
    say(f"all packets arrived as they should, after {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
