package fibulaprocessor

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/otelcol/otelcoltest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
)

// anything is a configuration of which nothing is used.
type anything struct {
	Rest map[string]any `mapstructure:",remain"`
}

// A source is a receiver that says where its pipeline begins.
type source struct{ begins chan consumer.Logs }

func (s *source) of(
	_ context.Context, _ receiver.Settings, _ component.Config, next consumer.Logs,
) (receiver.Logs, error) {
	return started{func() { s.begins <- next }}, nil
}

// started calls a function when it starts.
type started struct{ call func() }

func (s started) Start(context.Context, component.Host) error { s.call(); return nil }
func (s started) Shutdown(context.Context) error              { return nil }

// A drain is an exporter into memory.
type drain struct{ *consumertest.LogsSink }

func (drain) Start(context.Context, component.Host) error { return nil }
func (drain) Shutdown(context.Context) error              { return nil }

// TestThePage runs the page's configuration in a collector, and compares what comes out with what the page says. The
// receiver and the exporter are the test's.
func TestThePage(t *testing.T) {
	page := string(must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "go.md"))))
	block := func(language string) string {
		t.Helper()
		found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("%d blocks of %s", len(found), language)
		}
		return found[0][1]
	}
	t.Chdir(t.TempDir())
	built(t, "networks.fib", block("csv"))
	if err := os.WriteFile("config.yaml", []byte(block("yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	from, out := &source{make(chan consumer.Logs, 1)}, drain{new(consumertest.LogsSink)}
	factories := func() (otelcol.Factories, error) {
		all, err := otelcoltest.NopFactories()
		if err != nil {
			return all, err
		}
		create := func() component.Config { return new(anything) }
		receivers := receiver.NewFactory(component.MustNewType("otlp"), create,
			receiver.WithLogs(from.of, component.StabilityLevelStable))
		drained := func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) { return out, nil }
		exporters := exporter.NewFactory(component.MustNewType("debug"), create,
			exporter.WithLogs(drained, component.StabilityLevelStable))
		all.Receivers = map[component.Type]receiver.Factory{receivers.Type(): receivers}
		all.Exporters = map[component.Type]exporter.Factory{exporters.Type(): exporters}
		all.Processors = map[component.Type]processor.Factory{NewFactory().Type(): NewFactory()}
		return all, nil
	}
	collector := must(otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: factories, DisableGracefulShutdown: true, SkipSettingGRPCLogger: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{"file:config.yaml"}, ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
		}},
	}))
	ended := make(chan error, 1)
	go func() { ended <- collector.Run(context.Background()) }()
	var pipeline consumer.Logs
	select {
	case pipeline = <-from.begins:
	case err := <-ended:
		t.Fatal("the collector ended: ", err)
	case <-time.After(time.Minute):
		t.Fatal("the collector does not start")
	}
	in := must(new(plog.JSONUnmarshaler).UnmarshalLogs([]byte(block("json"))))
	if err := pipeline.ConsumeLogs(context.Background(), in); err != nil {
		t.Error(err)
	}
	found := out.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()
	said := regexp.MustCompile("(?m)^     -> ([^:]+): (Str|Int)\\((.*)\\)$").FindAllStringSubmatch(block("text"), -1)
	if len(said) != len(found) || len(said) < 4 {
		t.Errorf("%v, not %q", found, said)
	}
	attributes := out.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
	for _, line := range said {
		if value, ok := attributes.Get(line[1]); !ok || value.Type().String() != line[2] || value.AsString() != line[3] {
			t.Errorf("%v, not %s", found, line[0])
		}
	}
	collector.Shutdown()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
