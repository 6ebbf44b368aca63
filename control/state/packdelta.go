package state

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// PackedDelta is a SpecDelta in few bytes: the set of fields that differ from the delta of the
// SharedSpec, then these fields in the order of the constants. Strings are read from it without
// a copy. It is never written to disk. It lacks the array's specification, which an array has
// once.
type PackedDelta string

// The fields of a packed delta. Those from fieldGiven on are read on demand.
const (
	fieldName uint32 = 1 << iota
	fieldComment
	fieldBegin
	fieldDeadline
	fieldHeld
	fieldNice
	fieldPriority
	fieldDepends
	fieldScriptHash
	fieldScriptName
	fieldArgs
	fieldEnvHash
	fieldExport
	fieldSet
	fieldStdout
	fieldStderr
	fieldStdin
	fieldWorkDir
	fieldFile
	fieldHost
	fieldSubmit
	fieldLines
	fieldMail
	fieldNotify
	fieldPart
	fieldGiven
	fieldGivenSome // only the values that differ; the names are the same
	fieldProvenance
)

type deltaPacker struct {
	set uint32
	b   []byte
}

// PackDelta packs a delta relative to that of its SharedSpec.
func PackDelta(o, def *SpecDelta) PackedDelta {
	p := deltaPacker{b: make([]byte, 4, 256)}
	p.putText(fieldName, o.Name, def.Name)
	p.putText(fieldComment, o.Comment, def.Comment)
	p.putTime(fieldBegin, o.Begin, def.Begin)
	p.putTime(fieldDeadline, o.Deadline, def.Deadline)
	if o.Held != def.Held {
		p.set |= fieldHeld
	}
	p.putNumber(fieldNice, o.Nice, def.Nice)
	p.putNumber(fieldPriority, o.Priority, def.Priority)
	if o.Depends != nil || def.Depends != nil {
		p.putJSON(fieldDepends, o.Depends)
	}
	p.putHash(fieldScriptHash, o.ScriptHash, def.ScriptHash)
	p.putText(fieldScriptName, o.ScriptName, def.ScriptName)
	p.putList(fieldArgs, o.Args, def.Args)
	p.putHash(fieldEnvHash, o.EnvHash, def.EnvHash)
	p.putText(fieldExport, o.Export, def.Export)
	p.putList(fieldSet, o.Set, def.Set)
	p.putText(fieldStdout, o.Stdout, def.Stdout)
	p.putText(fieldStderr, o.Stderr, def.Stderr)
	p.putText(fieldStdin, o.Stdin, def.Stdin)
	p.putText(fieldWorkDir, o.WorkDir, def.WorkDir)
	p.putText(fieldFile, o.File, def.File)
	p.putText(fieldHost, o.Host, def.Host)
	p.putText(fieldSubmit, o.Submit, def.Submit)
	if o.Lines != def.Lines {
		p.set |= fieldLines
		p.putInt(int64(o.Lines[0]))
		p.putInt(int64(o.Lines[1]))
	}
	if !equalJSON(o.Mail, def.Mail) {
		p.putJSON(fieldMail, o.Mail)
	}
	if !equalJSON(o.Notify, def.Notify) {
		p.putJSON(fieldNotify, o.Notify)
	}
	if o.Part != nil || def.Part != nil {
		p.putJSON(fieldPart, o.Part)
	}
	p.putGiven(o.Given, def.Given)
	if !equalJSON(o.Provenance, def.Provenance) {
		p.putJSON(fieldProvenance, o.Provenance)
	}
	binary.LittleEndian.PutUint32(p.b, p.set)
	return PackedDelta(p.b)
}

func equalJSON[T any](a, b *T) bool {
	return a == b || a != nil && b != nil && string(MustJSON(a)) == string(MustJSON(b))
}

// MustJSON encodes plain data of this program, which always succeeds.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("control: %T: %v", v, err))
	}
	return b
}

func (p *deltaPacker) putInt(n int64) { p.b = binary.AppendVarint(p.b, n) }

func (p *deltaPacker) putString(s string) {
	p.b = append(binary.AppendUvarint(p.b, uint64(len(s))), s...)
}

func (p *deltaPacker) putText(field uint32, s, def string) {
	if s != def {
		p.set |= field
		p.putString(s)
	}
}

func (p *deltaPacker) putNumber(field uint32, n, def int64) {
	if n != def {
		p.set |= field
		p.putInt(n)
	}
}

func (p *deltaPacker) putTime(field uint32, t, def time.Time) {
	if !t.Equal(def) {
		p.set |= field
		p.putInt(ToNanos(t))
	}
}

func (p *deltaPacker) putList(field uint32, list, def []string) {
	if slices.Equal(list, def) {
		return
	}
	p.set |= field
	p.putInt(int64(len(list)))
	for _, s := range list {
		p.putString(s)
	}
}

// putHash keeps 64 hexadecimal digits in 32 bytes.
func (p *deltaPacker) putHash(field uint32, s, def string) {
	if s == def {
		return
	}
	p.set |= field
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != 32 || hex.EncodeToString(raw) != s {
		p.b = append(p.b, 0)
		p.putString(s)
		return
	}
	p.b = append(append(p.b, 1), raw...)
}

func (p *deltaPacker) putJSON(field uint32, v any) {
	p.set |= field
	p.putString(string(MustJSON(v)))
}

func (p *deltaPacker) putGiven(given, def map[string]string) {
	if maps.Equal(given, def) {
		return
	}
	same := len(given) == len(def)
	for name := range given {
		_, ok := def[name]
		same = same && ok
	}
	field := fieldGiven
	var names []string
	for name, v := range given {
		if old, ok := def[name]; !same || !ok || old != v {
			names = append(names, name)
		}
	}
	if same {
		field = fieldGivenSome
	}
	p.set |= field
	slices.Sort(names)
	p.putInt(int64(len(names)))
	for _, name := range names {
		p.putString(name)
		p.putString(given[name])
	}
}

type deltaUnpacker struct{ s string }

// unpackSpec writes the specification of a job into out. Without whole, what was given
// on the command line and the provenance are left out where they are the job's own.
func (f *SharedSpec) unpackSpec(p PackedDelta, whole bool, out *job.Spec) {
	*out = f.Spec
	set := binary.LittleEndian.Uint32([]byte(p[:4]))
	u := deltaUnpacker{string(p[4:])}
	if set&fieldHeld != 0 {
		out.Held = !out.Held
	}
	for _, x := range [...]struct {
		field uint32
		read  func(*deltaUnpacker, *job.Spec)
	}{
		{fieldName, func(u *deltaUnpacker, s *job.Spec) { s.Name = u.readString() }},
		{fieldComment, func(u *deltaUnpacker, s *job.Spec) { s.Comment = u.readString() }},
		{fieldBegin, func(u *deltaUnpacker, s *job.Spec) { s.Begin = FromNanos(u.readInt()) }},
		{fieldDeadline, func(u *deltaUnpacker, s *job.Spec) { s.Deadline = FromNanos(u.readInt()) }},
		{fieldNice, func(u *deltaUnpacker, s *job.Spec) { s.Nice = u.readInt() }},
		{fieldPriority, func(u *deltaUnpacker, s *job.Spec) { s.Priority = u.readInt() }},
		{fieldDepends, func(u *deltaUnpacker, s *job.Spec) { s.Depends = job.Dependency{}; u.readJSON(&s.Depends) }},
		{fieldScriptHash, func(u *deltaUnpacker, s *job.Spec) { s.Program.ScriptHash = u.readHash() }},
		{fieldScriptName, func(u *deltaUnpacker, s *job.Spec) { s.Program.ScriptName = u.readString() }},
		{fieldArgs, func(u *deltaUnpacker, s *job.Spec) { s.Program.Args = u.readList() }},
		{fieldEnvHash, func(u *deltaUnpacker, s *job.Spec) { s.Env.Hash = u.readHash() }},
		{fieldExport, func(u *deltaUnpacker, s *job.Spec) { s.Env.Export = u.readString() }},
		{fieldSet, func(u *deltaUnpacker, s *job.Spec) { s.Env.Set = u.readList() }},
		{fieldStdout, func(u *deltaUnpacker, s *job.Spec) { s.Output.Stdout = u.readString() }},
		{fieldStderr, func(u *deltaUnpacker, s *job.Spec) { s.Output.Stderr = u.readString() }},
		{fieldStdin, func(u *deltaUnpacker, s *job.Spec) { s.Output.Stdin = u.readString() }},
		{fieldWorkDir, func(u *deltaUnpacker, s *job.Spec) { s.WorkDir = u.readString() }},
		{fieldFile, func(u *deltaUnpacker, s *job.Spec) { s.Source.File = u.readString() }},
		{fieldHost, func(u *deltaUnpacker, s *job.Spec) { s.Source.Host = u.readString() }},
		{fieldSubmit, func(u *deltaUnpacker, s *job.Spec) { s.Source.Submit = u.readString() }},
		{fieldLines, func(u *deltaUnpacker, s *job.Spec) { s.Source.Lines = [2]int{int(u.readInt()), int(u.readInt())} }},
		{fieldMail, func(u *deltaUnpacker, s *job.Spec) { s.Mail = nil; u.readJSON(&s.Mail) }},
		{fieldNotify, func(u *deltaUnpacker, s *job.Spec) { s.Notify = nil; u.readJSON(&s.Notify) }},
		{fieldPart, func(u *deltaUnpacker, s *job.Spec) { s.Part = nil; u.readJSON(&s.Part) }},
	} {
		if set&x.field != 0 {
			x.read(&u, out)
		}
	}
	if !whole {
		return
	}
	if set&(fieldGiven|fieldGivenSome) != 0 {
		out.Source.Given = u.readGiven(set, f.Spec.Source.Given)
	}
	if set&fieldProvenance != 0 {
		out.Provenance = nil
		u.readJSON(&out.Provenance)
	}
}

func (u *deltaUnpacker) readInt() int64 {
	n, size := readVarint(u.s)
	u.s = u.s[size:]
	return n
}

// readVarint is binary.Varint of a string.
func readVarint(s string) (int64, int) {
	x, n := readUvarint(s)
	v := int64(x >> 1)
	if x&1 != 0 {
		v = ^v
	}
	return v, n
}

func readUvarint(s string) (x uint64, n int) {
	for shift := uint(0); ; shift += 7 {
		b := s[n]
		n++
		x |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return x, n
		}
	}
}

func (u *deltaUnpacker) readString() string {
	n, size := readUvarint(u.s)
	out := u.s[size : size+int(n)]
	u.s = u.s[size+int(n):]
	return out
}

func (u *deltaUnpacker) readList() []string {
	n := int(u.readInt())
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = u.readString()
	}
	return out
}

func (u *deltaUnpacker) readHash() string {
	raw := u.s[0] == 1
	u.s = u.s[1:]
	if !raw {
		return u.readString()
	}
	var digits [64]byte
	var sum [32]byte
	copy(sum[:], u.s)
	hex.Encode(digits[:], sum[:])
	u.s = u.s[32:]
	return string(digits[:])
}

func (u *deltaUnpacker) readJSON(v any) {
	if err := json.Unmarshal([]byte(u.readString()), v); err != nil {
		panic(fmt.Sprintf("control: a packed %T: %v", v, err)) // packed by ourselves
	}
}

func (u *deltaUnpacker) readGiven(set uint32, def map[string]string) map[string]string {
	n := int(u.readInt())
	var out map[string]string
	if set&fieldGivenSome != 0 {
		out = maps.Clone(def)
	} else if n > 0 {
		out = make(map[string]string, n)
	}
	for range n {
		name := u.readString()
		out[name] = u.readString()
	}
	return out
}

// ToNanos is a time in nanoseconds since the Unix epoch; 0 for the zero time. Times outside the
// range become the earliest or the latest one.
func ToNanos(t time.Time) int64 {
	switch y := t.Year(); {
	case t.IsZero():
		return 0
	case y < 1678:
		return math.MinInt64
	case y > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// FromNanos is the inverse of ToNanos.
func FromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
