package hostlist

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"", ""},
		{",a,,b,", "a b"},
		{"weaver1, weaver2\tvine5", "weaver1 weaver2 vine5"},
		{"n[1-3]", "n1 n2 n3"},
		{"n[001-003]", "n001 n002 n003"},
		{"n[9-011]", "n9 n10 n11"},
		{"n[00-1]", "n00 n01"},
		{"n[09-11]", "n09 n10 n11"},
		{"n[1,1]", "n1 n1"},
		{"[1-2]", "1 2"},
		{"r[0-1]n[0-2]", "r0n0 r0n1 r0n2 r1n0 r1n1 r1n2"},
		{"r[0-1][0-1]", "r00 r01 r10 r11"},
		{"n[1-2]-ib", "n1-ib n2-ib"},
		{"n[1-2],m[3]", "n1 n2 m3"},
		{"n{1}", "n{1}"},
		{"n[18446744073709551615]", "n18446744073709551615"},
	} {
		got, err := Expand(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("Expand(%q) = %q, %v; want %q", c.list, got, err, c.want)
		}
		if n, err := Count(c.list); err != nil || n != len(got) {
			t.Errorf("Count(%q) = %d, %v; want %d", c.list, n, err, len(got))
		}
	}
}

func TestExpandErrors(t *testing.T) {
	for _, c := range []struct{ list, part, reason string }{
		{"n[3-1]", "3-1", "backwards"},
		{"a,n[-1]", "-1", "not a range"},
		{"n[1-2", "[1-2", "no closing ]"},
		{"n1-2]", "n1-2]", "] without ["},
		{"n[]", "[]", "empty range"},
		{"n[1,,2]", "[1,,2]", "empty range"},
		{"n[a-b]", "a-b", "not a range"},
		{"n[ 1-2]", " 1-2", "not a range"},
		{"n[1-2-3]", "1-2-3", "not a range"},
		{"n[1-65537]", "1-65537", "more than 65536"},
		{"n[99999999999999999999]", "99999999999999999999", "too large"},
		{"n[[1-2]]", "[1-2", "not a range"},
		{"x,switch{s1}", "switch{s1}", "controller"},
		{"a[1-65536]b[1-65536]", "a[1-65536]b[1-65536]", "more than 1048576 hosts"},
		{strings.Repeat("n[1-65536],", 17), "n[1-65536]", "more than 1048576 hosts"},
		{strings.Repeat("x", 5000) + "[1-65536]", "", "more than 64 MiB"},
		{"n[" + strings.Repeat("1,", 256<<10) + "1]", "", "ranges"},
	} {
		_, err := Expand(c.list)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Expand(%.40q): error %v, want an *Error", c.list, err)
			continue
		}
		if part := c.list[e.Offset : e.Offset+e.Len]; c.part != "" && part != c.part || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("Expand(%.40q): %v at %.40q; want %q at %q", c.list, err, part, c.reason, c.part)
		}
	}
}

// A short text that means very many hosts must be refused without making them.
func TestExpandRefusesBeforeAllocating(t *testing.T) {
	lists := []string{
		strings.Repeat("r[1-65536]", 40),
		strings.Repeat("r[1-65536],", 40),
		strings.Repeat("x", 100_000) + "[1-65536]",
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, l := range lists {
		if _, err := Expand(l); err == nil {
			t.Errorf("Expand(%.30q) succeeded", l)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("refusing took %d bytes", used)
	}
}

func TestCompress(t *testing.T) {
	for _, c := range []struct{ names, inOrder, sorted string }{
		{"n1,n2,n3", "n[1-3]", "n[1-3]"},
		{"n3,n1,n2", "n[3,1-2]", "n[1-3]"},
		{"n01,n1,n2,n02,n03", "n[01,1-2,02-03]", "n[1-2,01-03]"},
		{"n9,n10,n11", "n[9-11]", "n[9-11]"},
		{"n09,n10,n11", "n[09-11]", "n[09-11]"},
		{"b1,a2,a1,c", "b1,a[2,1],c", "a[1-2],b1,c"},
		{"a1b,a2b", "a1b,a2b", "a1b,a2b"},
		{"r0n0,r0n1,r1n0,r1n1", "r0n[0-1],r1n[0-1]", "r0n[0-1],r1n[0-1]"},
		{"n1,n1,n2", "n[1,1-2]", "n[1-2]"},
		{"1,2,3", "[1-3]", "[1-3]"},
		{"a,a1,a2", "a,a[1-2]", "a,a[1-2]"},
		{"n099,n100,n101", "n[099-101]", "n[099-101]"},
		{"n099,n1000", "n[099,1000]", "n[099,1000]"},
		{"n,n", "n,n", "n"},
		{"n0,n00,n000,n1", "n[0,00,000,1]", "n[0-1,00,000]"},
		{"n10,n9,n8,m1", "n[10,9,8],m1", "m1,n[8-10]"},
		{"n99999999999999999999,n1", "n99999999999999999999,n1", "n1,n99999999999999999999"},
		{"", "", ""},
	} {
		names := strings.Split(c.names, ",")
		if got := CompressInOrder(names); got != c.inOrder {
			t.Errorf("CompressInOrder(%s) = %s, want %s", c.names, got, c.inOrder)
		}
		if got := Compress(names); got != c.sorted {
			t.Errorf("Compress(%s) = %s, want %s", c.names, got, c.sorted)
		}
	}
}

// A run longer than a range may be is written as several.
func TestCompareNumbersInPrefixes(t *testing.T) {
	names := []string{"rack9-2", "rack10-1", "rack10-02", "rack010-1", "a1b", "a01b", "11n", "1n", "n", "a", "a1"}
	slices.SortFunc(names, Compare)
	want := []string{"1n", "11n", "a", "a1", "a01b", "a1b", "n", "rack010-1", "rack9-2", "rack10-1", "rack10-02"}
	if !slices.Equal(names, want) {
		t.Errorf("sorted %q, want %q", names, want)
	}
}

func TestCompressLongRun(t *testing.T) {
	var names []string
	for i := range MaxRange + 10 {
		names = append(names, fmt.Sprint("n", i))
	}
	list := Compress(names)
	got, err := Expand(list)
	if err != nil || !slices.Equal(got, names) {
		t.Errorf("Compress gave %s, which expands to %d names, %v", list, len(got), err)
	}
}

var genName = rapid.StringMatching(`[a-c]{0,2}(-|[a-z]|0|1[0-2]{0,2}){0,2}[0-9]{1,3}|[a-d]{1,2}`)

func sortedOnce(names []string) []string {
	out := slices.Clone(names)
	slices.SortFunc(out, Compare)
	return slices.Compact(out)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(genName, 0, 40).Draw(t, "names")
		got, err := Expand(Compress(names))
		if want := sortedOnce(names); err != nil || !slices.Equal(got, want) {
			t.Fatalf("Compress gives %s → %q, %v; want %q", Compress(names), got, err, want)
		}
		got, err = Expand(CompressInOrder(names))
		if err != nil || !slices.Equal(got, names) {
			t.Fatalf("CompressInOrder gives %s → %q, %v; want %q", CompressInOrder(names), got, err, names)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"n[1-3]", "r[0-1]n[00-02]x,b", "a[1,3-5],c", "n[", "n[1-65536][1-65536]", " a\tb", "n[18446744073709551610-18446744073709551615]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		n, err := Count(list)
		if err != nil || n > 4096 {
			return
		}
		names, err := Expand(list)
		if err != nil || len(names) != n {
			t.Fatalf("Expand gives %d names, %v; Count %d", len(names), err, n)
		}
		again, err := Expand(Compress(names))
		if want := sortedOnce(names); err != nil || !slices.Equal(again, want) {
			t.Fatalf("%q → %q → %q, %v", names, Compress(names), again, err)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	for b.Loop() {
		if _, err := Expand("gpu[0001-9999]"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	names, err := Expand("gpu[0001-9999]")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Compress(names)
	}
}

// TestOrderOfManyBrackets has what scontrol show hostnames prints: ranks follow this order.
func TestOrderOfManyBrackets(t *testing.T) {
	for list, want := range map[string]string{
		"a[1-2]b[1-2]":             "a1b1 a1b2 a2b1 a2b2",
		"a[1-2]b[1-2]c[1-2]":       "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2",
		"a[1-2]b[1-2]c[1-2]d[1-2]": "a1b1c1d1 a1b1c1d2 a2b1c1d1 a2b1c1d2 a1b2c1d1 a1b2c1d2 a2b2c1d1 a2b2c1d2 a1b1c2d1 a1b1c2d2 a2b1c2d1 a2b1c2d2 a1b2c2d1 a1b2c2d2 a2b2c2d1 a2b2c2d2",
	} {
		if got, err := Expand(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %s", list, got, err, want)
		}
	}
}
