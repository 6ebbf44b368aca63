package slurmfmt

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

// Array limits. Slurm's MaxArraySize is one more than the largest index; a site
// may set it as high as MaxArraySize.
const (
	DefaultMaxArraySize = 1001
	MaxArraySize        = 4_000_001
)

// ArrayForms lists the forms of --array, for messages.
const ArrayForms = "0-15, 1,3,5, 1-7:2, with %N for at most N tasks at once"

// Array is a set of task indices as written, and how many tasks may run at once
// (0: no limit). It stays small for any number of tasks.
type Array struct {
	Ranges     []ArrayRange
	MaxRunning uint32
}

// ArrayRange is Lo, Lo+Step … up to Hi. Step is at least 1.
type ArrayRange struct{ Lo, Hi, Step uint32 }

// ParseArray reads the value of --array. maxSize is the site's MaxArraySize:
// indices stay below it. Square brackets around the indices are allowed.
func ParseArray(s string, maxSize uint32) (Array, error) {
	var a Array
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && strings.Contains(s, "%") { // as squeue shows it
		inner, err := ParseArray(s[1:len(s)-1], maxSize)
		var bad *Error
		if errors.As(err, &bad) {
			return a, &Error{Text: s, Offset: bad.Offset + 1, Len: bad.Len, Reason: bad.Reason}
		}
		return inner, err
	}
	set, running, limited := strings.Cut(s, "%")
	rest, first, limit := "", len(set), 0
	if limited {
		running, rest, _ = strings.Cut(running, ",") // the limit holds for all, wherever it is
		limit = len("%") + len(running)
		n, ok := parseDigits(running)
		if !ok || n > 1<<31 {
			return a, wrongPart(s, len(set), len(set)+1+len(running), "is not a number of tasks (form: 0-15%4)")
		}
		a.MaxRunning = uint32(n)
	}
	if rest != "" && !strings.HasPrefix(set, "[") {
		set += "," + rest
	}
	at := 0
	if inner, ok := strings.CutPrefix(set, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return a, textError(s, "has no closing ]")
		}
		set, at = inner, 1
	}
	written := 0 // with repetitions
	for part := range strings.SplitSeq(set, ",") {
		if limit > 0 && at > first { // behind the limit
			at, limit = at+limit, 0
		}
		r, reason := parseArrayRange(part, maxSize)
		if reason != "" {
			return a, wrongPart(s, at, at+len(part), "%s", reason)
		}
		a.Ranges = append(a.Ranges, r)
		if written += r.indexCount(); written > 2*MaxArraySize {
			return a, wrongPart(s, at, at+len(part), "makes a list of more than %d indices", 2*MaxArraySize)
		}
		at += len(part) + 1
	}
	return a, nil
}

func parseArrayRange(part string, maxSize uint32) (r ArrayRange, reason string) {
	span, step, stepped := strings.Cut(part, ":")
	low, high, ranged := strings.Cut(span, "-")
	if !ranged {
		high = low
	}
	lo, ok := parseDigits(low)
	hi, ok2 := parseDigits(high)
	st := int64(1)
	ok3 := true
	if stepped {
		st, ok3 = parseDigits(step)
		ok3 = ok3 && ranged
	}
	switch {
	case !ok || !ok2 || !ok3:
		return r, "is not a set of array indices (forms: " + ArrayForms + ")"
	case st == 0 || st > 1<<31:
		return r, "has a step that is not between 1 and 2147483648"
	case lo > hi:
		return r, "runs backwards"
	case hi >= int64(maxSize):
		return r, "has an index above " + strconv.FormatUint(uint64(maxSize)-1, 10) + " (MaxArraySize)"
	}
	return ArrayRange{uint32(lo), uint32(hi), uint32(st)}, ""
}

// indexCount is how many indices the range has.
func (r ArrayRange) indexCount() int { return int((r.Hi-r.Lo)/r.Step) + 1 }

// Contains reports whether an index is one of the set.
func (a Array) Contains(index uint32) bool {
	for _, r := range a.Ranges {
		if index >= r.Lo && index <= r.Hi && (index-r.Lo)%r.Step == 0 {
			return true
		}
	}
	return false
}

// Indices returns every index once, ascending.
func (a Array) Indices() []uint32 {
	top := uint32(0)
	for _, r := range a.Ranges {
		top = max(top, r.Hi)
	}
	set := make([]uint64, top/64+1)
	n := 0
	for _, r := range a.Ranges {
		for v := uint64(r.Lo); v <= uint64(r.Hi); v += uint64(r.Step) {
			if set[v/64]&(1<<(v%64)) == 0 {
				set[v/64] |= 1 << (v % 64)
				n++
			}
		}
	}
	out := make([]uint32, 0, n)
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			out = append(out, uint32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return out
}

// FormatArrayIndices prints ascending indices as squeue does: "1-3,7", and
// "1-7:2" where at least three follow each other in one other step.
func FormatArrayIndices(idx []uint32) string {
	var b strings.Builder
	for i := 0; i < len(idx); {
		j := i + 1
		var step uint32
		if j < len(idx) {
			step = idx[j] - idx[i]
			for j+1 < len(idx) && idx[j+1]-idx[j] == step {
				j++
			}
		}
		if step != 1 && j-i < 2 || j == len(idx) {
			j = i
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(idx[i]), 10))
		if j > i {
			b.WriteString("-" + strconv.FormatUint(uint64(idx[j]), 10))
			if step != 1 {
				b.WriteString(":" + strconv.FormatUint(uint64(step), 10))
			}
		}
		i = j + 1
	}
	return b.String()
}
