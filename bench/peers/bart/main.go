// The Go package bart: its Table, or its Fast, whose nodes have 256 bytes more. A contestant of the harness;
// bench/README.md has the protocol.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/gaissmai/bart"
)

// The hop of an address that no route covers.
const noHop = ^uint32(0)

// Keys that are looked up before the clock starts: other contestants have used the caches meanwhile.
const warmUp = 1 << 18

type contestant struct {
	insert func(netip.Prefix, uint32)
	// Looks up as many addresses as there are hops.
	lookUp  func(keys []netip.Addr, hops []uint32)
	keys    []netip.Addr
	size    int
	threads int
	batch   int
}

// The loop stands here twice: over an interface or a type parameter, each lookup would be an indirect call.

func ofTable() *contestant {
	table := &bart.Table[uint32]{}
	return &contestant{insert: table.Insert, lookUp: func(keys []netip.Addr, hops []uint32) {
		for at, key := range keys {
			hop, ok := table.Lookup(key)
			if !ok {
				hop = noHop
			}
			hops[at] = hop
		}
	}}
}

func ofFast() *contestant {
	table := &bart.Fast[uint32]{}
	return &contestant{insert: table.Insert, lookUp: func(keys []netip.Addr, hops []uint32) {
		for at, key := range keys {
			hop, ok := table.Lookup(key)
			if !ok {
				hop = noHop
			}
			hops[at] = hop
		}
	}}
}

func main() {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/gaissmai/bart" {
				version = dep.Version
			}
		}
	}
	fmt.Printf("fibula-bench 1 bart %s (%s)\n", version, runtime.Version())
	if len(os.Args) > 1 && os.Args[1] == "fast" {
		serve(ofFast())
	} else {
		serve(ofTable())
	}
}

func serve(c *contestant) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		if words[0] == "end" {
			return
		}
		answer, err := c.answer(words)
		if err != nil {
			answer = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
}

func (c *contestant) answer(words []string) (string, error) {
	switch {
	case words[0] == "load" && len(words) == 3:
		return c.load(words[1], words[2])
	case words[0] == "keys" && len(words) == 4:
		return c.read(words[1], words[2], words[3])
	case words[0] == "answer" && len(words) == 2:
		hops := make([]uint32, len(c.keys))
		c.lookUp(c.keys, hops)
		bytes := make([]byte, 0, 4*len(hops))
		for _, hop := range hops {
			bytes = binary.LittleEndian.AppendUint32(bytes, hop)
		}
		return "ok", os.WriteFile(words[1], bytes, 0o644)
	case words[0] == "run" && len(words) == 2:
		rounds, err := strconv.Atoi(words[1])
		if err != nil || rounds < 1 {
			return "", fmt.Errorf("%s: not a number from 1 on", words[1])
		}
		var times []string
		for range rounds {
			times = append(times, c.round())
		}
		return strings.Join(times, "\n"), nil
	}
	return "", fmt.Errorf("%s: not understood", strings.Join(words, " "))
}

// Builds the table of a file: records of an address, a length, three zeros and a hop.
func (c *contestant) load(family, path string) (string, error) {
	c.size = 4
	if family == "v6" {
		c.size = 16
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	record := c.size + 8
	if len(bytes)%record != 0 {
		return "", fmt.Errorf("the table's %d bytes are not records of %d", len(bytes), record)
	}
	prefixes, hops := make([]netip.Prefix, 0, len(bytes)/record), make([]uint32, 0, len(bytes)/record)
	for at := 0; at < len(bytes); at += record {
		prefixes = append(prefixes, netip.PrefixFrom(address(bytes[at:at+c.size]), int(bytes[at+c.size])))
		hops = append(hops, binary.LittleEndian.Uint32(bytes[at+c.size+4:]))
	}
	started := time.Now()
	for at, prefix := range prefixes {
		c.insert(prefix, hops[at])
	}
	built := time.Since(started)
	// What the reading has left is not of the table, and is not to be collected while the clock runs.
	bytes, prefixes, hops = nil, nil, nil
	debug.FreeOSMemory()
	return fmt.Sprintf("ok\t%d\t-\taddresses as netip.Addr, made before the clock starts", built.Nanoseconds()), nil
}

func (c *contestant) read(path, threads, batch string) (string, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	c.keys = c.keys[:0]
	for at := 0; at+c.size <= len(bytes); at += c.size {
		c.keys = append(c.keys, address(bytes[at:at+c.size]))
	}
	if c.threads, err = strconv.Atoi(threads); err != nil {
		return "", err
	}
	if c.batch, err = strconv.Atoi(batch); err != nil {
		return "", err
	}
	if c.threads < 1 || c.batch < 1 || len(c.keys) == 0 || len(c.keys)%c.threads != 0 {
		return "", fmt.Errorf("%s: not as many keys for each thread", path)
	}
	runtime.GC()
	return "ok", nil
}

// The address of bytes in little-endian order.
func address(bytes []byte) netip.Addr {
	if len(bytes) == 4 {
		var four [4]byte
		binary.BigEndian.PutUint32(four[:], binary.LittleEndian.Uint32(bytes))
		return netip.AddrFrom4(four)
	}
	var all [16]byte
	for at := range all {
		all[at] = bytes[15-at]
	}
	return netip.AddrFrom16(all)
}

func (c *contestant) sum(keys []netip.Addr, hops []uint32) (sum uint32) {
	for len(keys) > 0 {
		count := min(len(hops), len(keys))
		c.lookUp(keys[:count], hops[:count])
		for _, hop := range hops[:count] {
			sum += hop
		}
		keys = keys[count:]
	}
	return sum
}

type result struct {
	started, ended time.Time
	cpu            int64
	sum            uint32
}

// Each thread looks up its part of the keys.
func (c *contestant) round() string {
	results := make([]result, c.threads)
	part := len(c.keys) / c.threads
	var ready, done sync.WaitGroup
	ready.Add(c.threads)
	for thread := range c.threads {
		done.Add(1)
		go func() {
			defer done.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			keys, hops := c.keys[thread*part:(thread+1)*part], make([]uint32, c.batch)
			c.sum(keys[:min(len(keys), warmUp)], hops)
			ready.Done()
			ready.Wait()
			started, before := time.Now(), threadTime()
			sum := c.sum(keys, hops)
			results[thread] = result{started, time.Now(), threadTime() - before, sum}
		}()
	}
	done.Wait()
	first, last, cpu, sum := results[0].started, results[0].ended, int64(0), uint32(0)
	for _, one := range results {
		if one.started.Before(first) {
			first = one.started
		}
		if one.ended.After(last) {
			last = one.ended
		}
		cpu += one.cpu
		sum += one.sum
	}
	return fmt.Sprintf("time\t%d\t%d\t%d", last.Sub(first).Nanoseconds(), cpu, sum)
}

// Nanoseconds that this thread has run: clock_gettime(CLOCK_THREAD_CPUTIME_ID).
func threadTime() int64 {
	var spec syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&spec)), 0); errno != 0 {
		panic(errno)
	}
	return spec.Nano()
}
