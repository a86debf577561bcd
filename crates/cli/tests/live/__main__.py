"""`fibula serve` with real daemons in network namespaces: BIRD -> FRR -> FPM, BMP, BGP and the kernel -> fibula.

    python3 crates/cli/tests/live [--large] [--seed N] [--if-possible]

It needs root and Debian's packages frr, bird2 and iproute2; it says so where they are missing. The last step needs gobgpd, too,
and is skipped without it. Python's standard library is all that it uses. It is no test of cargo, because it is mostly other
programs' output that it reads, and a table's second opinion should share no code with the first.
"""

import argparse
import sys
import time

import lab
import rates
import router
import steps


def arguments():
    parser = argparse.ArgumentParser(prog="live", description=__doc__.partition("\n")[0])
    parser.add_argument("--large", action="store_true", help="100,000 IPv4 and 20,000 IPv6 routes, not 1,000 and 200")
    parser.add_argument("--seed", type=int, default=1, help="of the routes and their changes")
    parser.add_argument("--if-possible", action="store_true", help="end with success where it cannot run, and say why")
    parser.add_argument("--until", metavar="STEP", help="end after this step, for work on the test")
    parser.add_argument("--rates", metavar="N,N", nargs="?", const="950000,200000",
                        help="measure, and test nothing: how long so many IPv4 and IPv6 routes take (default: %(const)s)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def say(text):
    print(f"live: {text}", file=sys.stderr, flush=True)


def main():
    options = arguments()
    if not lab.begin(options, say, "the test with real daemons"):
        return 0 if options.if_possible else 1
    if options.rates:
        rates.run(say, [int(count) for count in options.rates.split(",")], options.seed)
        return 0
    scale = router.SCALES["large" if options.large else "small"]
    say(f"{scale.routes4} + {scale.routes6} routes, seed {options.seed}; {lab.versions()}")
    begin = time.monotonic()
    here = router.Router(scale, options.seed, say)
    try:
        steps.run(here, options.until)
    except KeyboardInterrupt:
        say("interrupted: nothing is left of it")
        return 130
    except lab.Failed as failed:
        say(f"FAILED after {time.monotonic() - begin:.1f} s: {failed}")
        print(here.log_tails(), file=sys.stderr)
        return 1
    say(f"all equal, after {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
