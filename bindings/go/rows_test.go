package fibula

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// cells has texts that are no plain addresses: what a log may have in a column of them.
var cells = []string{
	"", " ", "-", "localhost", "10.0.0", "10.0.0.256", "10.0.0.01", "1.2.3.4.5", "10.0.0.0/8", "::/0", "2001:db8::/32",
	"[", "[]", "[::1", "::1]", "[::1]", "[::1]:443", "[::1]:", "[::1]:65536", "[::1]:+1", "[::1]x", "[10.0.0.1]",
	"[10.0.0.1]:80", "[fe80::1%eth0]:80", "fe80::1%eth0", "fe80::1%", "10.0.0.1:443", "10.0.0.1:", "10.0.0.1:65536",
	"10.0.0.1:0080", "10.0.0.1/32", "10.0.0.1/032", "10.0.0.1/128", "::1/128", "::1/32", "::ffff:10.0.0.1",
	"::ffff:10.0.0.1/128", "[::ffff:10.0.0.1]:80", "::ffff:a00:1", "  10.0.0.1\t", "0x0a000001", "167772161", "::1.2.3.4",
	"::10.0.0.01", "00001::", "1:2:3:4:5:6:7:8:9", ":::", "1::2::3", "2001:DB8::1", "10.0.0.1 10.0.0.2", "é",
	"10.0.0.1\u00a0",
	"a,b", "\"", "10.0.0.1:443:443", "NULL", "::1:443", "10.0.0.1%eth0", "[::1]:443 ", "\v10.0.0.1",
}

// TestRows compares the rows of this package with those of the command: addresses of both families in and beside the
// prefixes, cells without any, values of which some are missing.
func TestRows(t *testing.T) {
	folder := t.TempDir()
	random := rand.New(rand.NewPCG(5, 5))
	prefixes := nested(4, 1500)
	known := make(oracle)
	var source bytes.Buffer
	source.WriteString("prefix,asn,name\n")
	for number, prefix := range prefixes {
		known[prefix] = number
		asn := []string{"", "64500", fmt.Sprint(random.Uint32())}[random.IntN(3)]
		name := []string{"", "Zürich", `"a, b"`, fmt.Sprintf("n%d", random.IntN(50))}[random.IntN(4)]
		fmt.Fprintf(&source, "%s,%s,%s\n", prefix, asn, name)
	}
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("t.csv", source.Bytes())
	run(t, folder, "build", "t.csv", "-o", "t.fib")
	file := must(os.Create(filepath.Join(folder, "rows.csv")))
	rows := bufio.NewWriter(file)
	rows.WriteString("n,ip\n")
	spans := append(known.spans(true), known.spans(false)...)
	for at := range *manyRows {
		cell := cells[at/5%len(cells)]
		if at%5 != 0 {
			span := spans[random.IntN(len(spans))]
			cell = addrOf(span.first.plus(upTo(span.size, random)), span.is4).String()
		}
		if bytes.ContainsAny([]byte(cell), "\",\n") {
			cell = `"` + string(bytes.ReplaceAll([]byte(cell), []byte(`"`), []byte(`""`))) + `"`
		}
		fmt.Fprintf(rows, "%d,%s\n", at, cell)
	}
	if rows.Flush() != nil || file.Close() != nil {
		t.Fatal("the rows cannot be written")
	}
	run(t, folder, "annotate", "--table", "t.fib", "--column", "ip", "--add", "prefix,asn,name", "-q",
		"rows.csv", "-o", "out.csv")

	table := must(Open(filepath.Join(folder, "t.fib")))
	asn, name := must(table.Column("asn")), must(table.Column("name"))
	if !asn.IsNumber() || name.IsNumber() {
		t.Fatal("asn is of numbers, name of texts")
	}
	asns := asn.Texts()
	in := csv.NewReader(bufio.NewReaderSize(must(os.Open(filepath.Join(folder, "out.csv"))), 1<<20))
	in.ReuseRecord = true
	if header := must(in.Read()); len(header) != 5 {
		t.Fatal(header)
	}
	const size = 5000
	addrs, found, expected := make([]netip.Addr, 0, size), make([]uint32, size), make([][5]string, 0, size)
	count, matched, bad := 0, 0, 0
	check := func() {
		table.LookupBatch(addrs, found)
		for at, row := range found[:len(addrs)] {
			// Prefixes are the slow part, and checked by the oracle's test, too.
			prefix := expected[at][2]
			if at%8 == 0 {
				if of, _, ok := table.Match(addrs[at]); ok != (prefix != "") || ok && of.String() != prefix {
					t.Fatalf("%q: %v, not %q", expected[at], of, prefix)
				}
			}
			value := ""
			if row != None {
				matched++
				value = asns[row]
			}
			if (row != None) != (prefix != "") || value != expected[at][3] || name.Text(row) != expected[at][4] {
				t.Fatalf("%q: row %d with %q, %q", expected[at], row, value, name.Text(row))
			}
			if number, ok := asn.Number(row); at%8 == 1 && (ok != (value != "") || ok && fmt.Sprint(number) != value) {
				t.Fatalf("%q: %d, %v", expected[at], number, ok)
			}
		}
		addrs, expected = addrs[:0], expected[:0]
	}
	for {
		record, err := in.Read()
		if err == io.EOF {
			break
		}
		addr, ok := ParseAddr(must(record, err)[1])
		if !ok {
			bad++
		}
		if record[0] != fmt.Sprint(count) {
			t.Fatalf("row %d is %q", count, record)
		}
		addrs, expected = append(addrs, addr), append(expected, [5]string(record))
		count++
		if len(addrs) == size {
			check()
		}
	}
	check()
	if count != *manyRows || matched < count/3 || matched > count*9/10 || bad < count/10 {
		t.Fatalf("%d rows, of which %d have a prefix and %d no address", count, matched, bad)
	}
}
