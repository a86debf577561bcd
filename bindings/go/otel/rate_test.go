package fibulaprocessor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"
)

// BenchmarkLogs has the processor's time for a log record in batches of 1,000, beside the time to add two attributes to
// it that are known: what any processor needs. Times are those of the processor, because other programs may run.
func BenchmarkLogs(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	var csv strings.Builder
	csv.WriteString("prefix,site,vlan\n")
	for at := range 50_000 {
		fmt.Fprintf(&csv, "%d.%d.%d.0/24,site %d,%d\n", 10+at/65536, at/256%256, at%256, at%300, at%3000)
	}
	path := built(b, filepath.Join(b.TempDir(), "t.fib"), csv.String())
	factory := NewFactory()
	config := &Config{Lookups: []Lookup{{Table: path, From: []string{"client.address"}, Prefix: "client."}}}
	set := processortest.NewNopSettings(factory.Type())
	logs := must(factory.CreateLogs(context.Background(), set, config, consumertest.NewNop()))
	if err := logs.Start(context.Background(), nowhere); err != nil {
		b.Fatal(err)
	}
	const size = 1000
	template := plog.NewLogs()
	records := template.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range size {
		attributes := records.AppendEmpty().Attributes()
		attributes.PutStr("client.address", fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256)))
		attributes.PutStr("url.path", "/")
	}
	used := func() float64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return float64(usage.Utime.Nano() + usage.Stime.Nano())
	}
	ways := map[string]func(plog.Logs){
		"processor": func(in plog.Logs) {
			if err := logs.ConsumeLogs(context.Background(), in); err != nil {
				b.Fatal(err)
			}
		},
		"two attributes": func(in plog.Logs) {
			for _, record := range in.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
				record.Attributes().PutStr("client.site", "site 1")
				record.Attributes().PutInt("client.vlan", 1)
			}
		},
	}
	for _, name := range []string{"two attributes", "processor"} {
		b.Run(name, func(b *testing.B) {
			taken := 0.0
			for b.Loop() {
				in := plog.NewLogs()
				template.CopyTo(in)
				before := used()
				ways[name](in)
				taken += used() - before
			}
			b.ReportMetric(taken/float64(b.N)/size, "cpu-ns/record")
			b.ReportMetric(0, "ns/op")
		})
	}
}
