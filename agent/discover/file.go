package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// readText reads a small file of sysfs or procfs, without its last line end.
// The second result is false where it cannot be read.
func (s *search) readText(path string) (string, bool) {
	b, err := fs.ReadFile(s.FS, path)
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(b)), true
}

// readNumber reads a file that holds one integer, decimal or 0x.
func (s *search) readNumber(path string) (int64, bool) {
	t, ok := s.readText(path)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(t, 0, 64)
	return n, err == nil
}

func (s *search) fileExists(path string) bool {
	_, err := fs.Stat(s.FS, path)
	return err == nil
}

// listNames lists a directory; nil where it cannot be read.
func (s *search) listNames(dir string) []string {
	entries, err := fs.ReadDir(s.FS, dir)
	if err != nil {
		return nil
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// findField finds "key<sep>value" among the lines of text.
func findField(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// maxListed bounds the members of a kernel list, so that a damaged file
// cannot ask for gigabytes.
const maxListed = 1 << 16

var errList = errors.New("not a list of numbers like 0-3,8")

// parseList reads the kernel's list form ("0-3,8,10-11"), as in cpulist. The
// result is ascending without repetition; the empty text is the empty list.
func parseList(text string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 31)
		hi, err2 := strconv.ParseUint(last, 10, 31)
		if err1 != nil || err2 != nil || hi < lo || hi-lo >= maxListed || len(out) >= maxListed {
			return nil, fmt.Errorf("%q: %w", part, errList)
		}
		for n := lo; n <= hi; n++ {
			out = append(out, int(n))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// readList reads a file in the kernel's list form.
func (s *search) readList(path string) ([]int, bool) {
	t, ok := s.readText(path)
	if !ok {
		return nil, false
	}
	l, err := parseList(t)
	return l, err == nil
}

// intersectSorted keeps the members of a that are in b; both ascending.
func intersectSorted(a, b []int) []int {
	out := make([]int, 0, min(len(a), len(b)))
	for _, n := range a {
		if _, found := slices.BinarySearch(b, n); found {
			out = append(out, n)
		}
	}
	return out
}
