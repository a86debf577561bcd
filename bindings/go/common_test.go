package fibula

import (
	"flag"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	manyAnswers = flag.Int("answers", 2_000_000, "answers that are compared with the oracle")
	manyRows    = flag.Int("rows", 100_000, "rows that are compared with those of the command")
)

// command is the program `fibula` that FIBULA_BIN names.
func command(t testing.TB) string {
	t.Helper()
	path := os.Getenv("FIBULA_BIN")
	if path == "" {
		t.Skip("FIBULA_BIN names no command")
	}
	return path
}

// run runs the command; nothing depends on what the person has configured.
func run(t testing.TB, folder string, arguments ...string) string {
	t.Helper()
	program := exec.Command(command(t), arguments...)
	program.Dir = folder
	program.Env = append(os.Environ(), "FIBULA_CONFIG=")
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("fibula %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// built makes a table of CSV, and returns its path.
func built(t testing.TB, csv string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "t.csv"), []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, folder, "build", "t.csv", "-o", "t.fib")
	return filepath.Join(folder, "t.fib")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A uint128 is an address as a number, IPv4 in the low 32 bits.
type uint128 struct{ high, low uint64 }

func (a uint128) minus(b uint128) uint128 {
	low, borrow := bits.Sub64(a.low, b.low, 0)
	high, _ := bits.Sub64(a.high, b.high, borrow)
	return uint128{high, low}
}

func (a uint128) plus(b uint128) uint128 {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return uint128{high, low}
}

func (a uint128) isBelow(b uint128) bool { return a.high < b.high || a.high == b.high && a.low < b.low }

// upTo is a random number, at most `most`.
func upTo(most uint128, random *rand.Rand) uint128 {
	length := bits.Len64(most.low)
	if most.high != 0 {
		length = 64 + bits.Len64(most.high)
	}
	for {
		found := uint128{random.Uint64(), random.Uint64()}
		if length <= 64 {
			found = uint128{0, found.low & (^uint64(0) >> (64 - length))}
		} else {
			found.high &= ^uint64(0) >> (128 - length)
		}
		if !most.isBelow(found) {
			return found
		}
	}
}

func bytesOf(number uint128) (bytes [16]byte) {
	for at := range 8 {
		bytes[at] = byte(number.high >> (56 - 8*at))
		bytes[8+at] = byte(number.low >> (56 - 8*at))
	}
	return bytes
}

func addrOf(number uint128, is4 bool) netip.Addr {
	bytes := bytesOf(number)
	if is4 {
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return netip.AddrFrom16(bytes)
}

func numberOf(addr netip.Addr) (number uint128) {
	for _, value := range addr.AsSlice() {
		number = uint128{number.high<<8 | number.low>>56, number.low<<8 | uint64(value)}
	}
	return number
}

// nested has prefixes of both families of which many lie inside others, at both ends of the space, too.
func nested(seed uint64, count int) []netip.Prefix {
	random := rand.New(rand.NewPCG(seed, 0))
	found := make(map[netip.Prefix]bool)
	for _, is4 := range []bool{true, false} {
		most, length := uint128{^uint64(0), ^uint64(0)}, 128
		if is4 {
			most, length = uint128{0, 1<<32 - 1}, 32
		}
		near := []uint128{{}, {0, 1}, most, most.minus(uint128{0, 1})}
		for range 12 {
			near = append(near, upTo(most, random))
		}
		for wanted := len(found) + count; len(found) < wanted; {
			at := near[random.IntN(len(near))]
			shift := random.IntN(length - 12)
			change := uint64(random.IntN(1 << 12))
			at.low ^= change << shift
			if !is4 {
				at.high ^= change << shift >> 1 // wherever it comes to lie
			}
			bits := []int{random.IntN(length + 1), length, length - 1, length / 2, 8, 1}[random.IntN(6)]
			prefix := must(addrOf(at, is4).Prefix(bits))
			if !is4 && prefix.Overlaps(netip.MustParsePrefix("::ffff:0:0/96")) {
				continue // its addresses are those of IPv4
			}
			found[prefix] = true
		}
	}
	prefixes := make([]netip.Prefix, 0, len(found))
	for prefix := range found {
		prefixes = append(prefixes, prefix)
	}
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
	return prefixes
}

// An oracle finds the longest match by trying every length, longest first: slow, and obviously right.
type oracle map[netip.Prefix]int

func (o oracle) lookup(addr netip.Addr) (number int, prefix netip.Prefix, ok bool) {
	for length := addr.BitLen(); length >= 0; length-- {
		prefix = must(addr.Prefix(length))
		if number, ok = o[prefix]; ok {
			return number, prefix, true
		}
	}
	return 0, netip.Prefix{}, false
}

// A span is the addresses from one place where a prefix begins or has ended to the next one: all have one answer.
type span struct {
	first, size uint128 // the size without one
	is4         bool
	expected    uint32 // the number of a prefix, or None
}

func (o oracle) spans(is4 bool) []span {
	most := uint128{^uint64(0), ^uint64(0)}
	if is4 {
		most = uint128{0, 1<<32 - 1}
	}
	cuts := []uint128{{}}
	for prefix := range o {
		if prefix.Addr().Is4() != is4 {
			continue
		}
		first := numberOf(prefix.Addr())
		host := prefix.Addr().BitLen() - prefix.Bits()
		size := uint128{0, ^uint64(0)}
		if host < 64 {
			size.low = 1<<host - 1
		} else {
			size.high = 1<<(host-64) - 1
		}
		cuts = append(cuts, first)
		if last := first.plus(size); last != most {
			cuts = append(cuts, last.plus(uint128{0, 1}))
		}
	}
	slices.SortFunc(cuts, func(a, b uint128) int {
		switch {
		case a.isBelow(b):
			return -1
		case b.isBelow(a):
			return 1
		}
		return 0
	})
	cuts = slices.Compact(cuts)
	spans := make([]span, len(cuts))
	for at, first := range cuts {
		last := most
		if at+1 < len(cuts) {
			last = cuts[at+1].minus(uint128{0, 1})
		}
		expected := None
		if number, _, ok := o.lookup(addrOf(first, is4)); ok {
			expected = uint32(number)
		}
		spans[at] = span{first: first, size: last.minus(first), is4: is4, expected: expected}
	}
	return spans
}
