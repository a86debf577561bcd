package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A route has a number, and a name of which there are fewer.
type route struct {
	prefix netip.Prefix
	asn    uint32
}

func nameOf(asn uint32) string { return fmt.Sprintf("network %d", asn%5000) }

// lengths that routing tables have, with how often of a hundred.
var (
	lengths4 = []int{16, 5, 18, 3, 19, 4, 20, 8, 21, 6, 22, 12, 23, 10, 24, 52}
	lengths6 = []int{29, 8, 32, 22, 36, 7, 40, 10, 44, 8, 48, 45}
)

func oneOf(lengths []int, random *rand.Rand) int {
	at := random.IntN(100)
	for i := 0; ; i += 2 {
		if at -= lengths[i+1]; at < 0 {
			return lengths[i]
		}
	}
}

// random4 is an address of those that are routed.
func random4(random *rand.Rand) netip.Addr {
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], (1+random.Uint32N(222))<<24|random.Uint32N(1<<24))
	return netip.AddrFrom4(bytes)
}

// random6 is an address in few of the possible blocks, as they are allocated.
func random6(random *rand.Rand) netip.Addr {
	var bytes [16]byte
	binary.BigEndian.PutUint64(bytes[:8], (0x2001+random.Uint64N(0xa00))<<48|random.Uint64()>>16)
	binary.BigEndian.PutUint64(bytes[8:], random.Uint64())
	return netip.AddrFrom16(bytes)
}

// routes are so many different ones of a family.
func routes(count int, is4 bool, random *rand.Rand) []route {
	known := make(map[netip.Prefix]bool, count)
	found := make([]route, 0, count)
	for len(found) < count {
		addr, length := random6(random), oneOf(lengths6, random)
		if is4 {
			addr, length = random4(random), oneOf(lengths4, random)
		}
		prefix, err := addr.Prefix(length)
		if err == nil && !known[prefix] {
			known[prefix] = true
			found = append(found, route{prefix, 1 + random.Uint32N(70000)})
		}
	}
	return found
}

// keys are addresses, of which half are in a prefix for sure.
func keys(of []route, count int, is4 bool, random *rand.Rand) []netip.Addr {
	found := make([]netip.Addr, count)
	for at := range found {
		addr := random6(random)
		if is4 {
			addr = random4(random)
		}
		if at%2 == 0 {
			prefix := of[random.IntN(len(of))].prefix
			inside, bytes := prefix.Addr().AsSlice(), addr.AsSlice()
			for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
				inside[bit/8] |= bytes[bit/8] & (0x80 >> (bit % 8))
			}
			addr, _ = netip.AddrFromSlice(inside)
		}
		found[at] = addr
	}
	return found
}

// files writes the table as fibula and as mmdb have it, and returns their paths.
func files(folder string, of []route) (fib, mmdb string) {
	var csv strings.Builder
	csv.WriteString("prefix,asn,name\n")
	for _, route := range of {
		fmt.Fprintf(&csv, "%s,%d,%s\n", route.prefix, route.asn, nameOf(route.asn))
	}
	fib, mmdb = filepath.Join(folder, "t.fib"), filepath.Join(folder, "t.mmdb")
	source := filepath.Join(folder, "t.csv")
	check(os.WriteFile(source, []byte(csv.String()), 0o600))
	command := os.Getenv("FIBULA_BIN")
	for _, arguments := range [][]string{{"build", source, "-o", fib}, {"export", fib, "-o", mmdb}} {
		program := exec.Command(command, arguments...)
		program.Env = append(os.Environ(), "FIBULA_CONFIG=")
		if out, err := program.CombinedOutput(); err != nil {
			check(fmt.Errorf("fibula %v: %w\n%s", arguments, err, out))
		}
	}
	return fib, mmdb
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rates:", err)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
