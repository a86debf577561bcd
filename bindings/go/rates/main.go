// Rates of the module beside Go's own packages, in one run: bart, a reader of mmdb, and netipx.
//
// The ways of a group do the same work and give the same sum, which is compared before anything is timed. They run in
// turns; the median counts. Times are processor time of the whole process, because other programs may run meanwhile:
// the collector of garbage and the library's thread are in it. FIBULA_BIN names the command `fibula`, which makes the
// tables.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	fibula "fibula.example/bindings/go"
)

// A way does the work once, and returns a sum of its answers.
type way struct {
	name string
	run  func() uint64
}

func main() {
	prefixes := flag.Int("prefixes", 500_000, "prefixes of IPv4, and a fifth of it of IPv6")
	count := flag.Int("keys", 1<<20, "addresses of each family")
	rounds := flag.Int("rounds", 7, "rounds")
	flag.Parse()
	random := rand.New(rand.NewPCG(7, 7))
	v4, v6 := routes(*prefixes, true, random), routes(*prefixes/5, false, random)
	folder := must(os.MkdirTemp("", "fibula-rates"))
	defer os.RemoveAll(folder)
	fib, mmdb := files(folder, slices.Concat(v4, v6))
	t := open(fib, mmdb, v4, v6)
	versions := fmt.Sprintf("%s %s, fibula %s", runtime.Version(), runtime.GOARCH, fibula.Version())
	fmt.Printf("%s, %d + %d prefixes\n", versions, len(v4), len(v6))
	for _, is4 := range []bool{true, false} {
		of, name := v6, "IPv6"
		if is4 {
			of, name = v4, "IPv4"
		}
		addrs := keys(of, *count, is4, random)
		measure(name+", number of an address", *count, *rounds, t.numbers(addrs, is4))
		measure(name+", name of a text", *count, *rounds, t.names(addrs))
		measure(name+", whether it is in a prefix", *count, *rounds, t.members(addrs))
	}
	changes := routes(min(20_000, *prefixes), true, random)
	measure("changes, each visible before the next", len(changes), *rounds, t.changes(v4, changes))
}

// measure compares the sums of the ways, and prints their rates.
func measure(group string, count, rounds int, ways []way) {
	sum := ways[0].run()
	for _, way := range ways[1:] {
		if found := way.run(); found != sum {
			check(fmt.Errorf("%s: %s has the sum %d, and %s %d; nothing is timed", group, way.name, found, ways[0].name, sum))
		}
	}
	taken := make([][]float64, len(ways))
	for range rounds {
		for at, way := range ways {
			begin := processorTime()
			way.run()
			taken[at] = append(taken[at], processorTime()-begin)
		}
	}
	medians, best := make([]float64, len(ways)), 0.0
	for at, times := range taken {
		slices.Sort(times)
		medians[at] = times[len(times)/2]
		if !strings.HasPrefix(ways[at].name, "fibula") && (best == 0 || medians[at] < best) {
			best = medians[at]
		}
	}
	fmt.Printf("\n%-44s million/s  times the best of the others\n", group)
	for at, way := range ways {
		fmt.Printf("  %-42s%10.2f%8.2f\n", way.name, float64(count)/medians[at]/1e6, best/medians[at])
	}
}

// processorTime is what the process has used, in seconds.
func processorTime() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
