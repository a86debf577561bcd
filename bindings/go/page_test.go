package fibula

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePage runs the programs of the page, in a module of its own that has this one as the page says. What stands
// below a program is what it prints.
func TestThePage(t *testing.T) {
	root := must(filepath.Abs(filepath.Join("..", "..")))
	page := string(must(os.ReadFile(filepath.Join(root, "docs", "go.md"))))
	folder := t.TempDir()
	networks := regexp.MustCompile("(?ms)^```csv\n(.*?)^```$").FindStringSubmatch(page)
	programs := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if networks == nil || len(programs) != 2 {
		t.Fatalf("%d programs", len(programs))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("networks.csv", networks[1])
	run(t, folder, "build", "networks.csv", "-o", "networks.fib")
	write("go.mod", "module example.com/program\n\ngo 1.24\n")
	golang := func(arguments ...string) string {
		t.Helper()
		program := exec.Command("go", arguments...)
		program.Dir = folder
		program.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := program.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		return string(out)
	}
	edit := regexp.MustCompile(`(?m)^go (mod edit .*)$`).FindStringSubmatch(page)
	golang(strings.Fields(strings.ReplaceAll(edit[1], "$FIBULA", root))...)
	for _, program := range programs {
		write("main.go", program[1])
		_, said, ok := strings.Cut(program[1], "// Output:\n")
		if !ok {
			t.Fatal("a program without its output")
		}
		said = strings.TrimPrefix(strings.ReplaceAll("\n"+said, "\n// ", "\n"), "\n")
		if found := golang("run", "."); found != said {
			t.Errorf("%s\nprints\n%s\nnot\n%s", program[1], found, said)
		}
	}
}
