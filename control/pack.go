package control

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

// packed is an own part in few bytes: a set of the fields that differ from those of
// the form's first job, then these fields in the order of the constants. Strings
// are read out of it without a copy. It is never written to disk. The array's
// specification is not in it: an array has it once.
type packed string

// The fields of a packed own part. Those from fieldGiven on are read on demand.
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
	fieldGiven
	fieldGivenSome // only the values that differ; the names are the same
	fieldProvenance
)

type packer struct {
	set uint32
	b   []byte
}

// pack makes a packed own part relative to another one.
func pack(o, def *own) packed {
	p := packer{b: make([]byte, 4, 256)}
	p.text(fieldName, o.Name, def.Name)
	p.text(fieldComment, o.Comment, def.Comment)
	p.time(fieldBegin, o.Begin, def.Begin)
	p.time(fieldDeadline, o.Deadline, def.Deadline)
	if o.Held != def.Held {
		p.set |= fieldHeld
	}
	p.number(fieldNice, o.Nice, def.Nice)
	p.number(fieldPriority, o.Priority, def.Priority)
	if o.Depends != nil || def.Depends != nil {
		p.json(fieldDepends, o.Depends)
	}
	p.hash(fieldScriptHash, o.ScriptHash, def.ScriptHash)
	p.text(fieldScriptName, o.ScriptName, def.ScriptName)
	p.list(fieldArgs, o.Args, def.Args)
	p.hash(fieldEnvHash, o.EnvHash, def.EnvHash)
	p.text(fieldExport, o.Export, def.Export)
	p.list(fieldSet, o.Set, def.Set)
	p.text(fieldStdout, o.Stdout, def.Stdout)
	p.text(fieldStderr, o.Stderr, def.Stderr)
	p.text(fieldStdin, o.Stdin, def.Stdin)
	p.text(fieldWorkDir, o.WorkDir, def.WorkDir)
	p.text(fieldFile, o.File, def.File)
	p.text(fieldHost, o.Host, def.Host)
	p.text(fieldSubmit, o.Submit, def.Submit)
	if o.Lines != def.Lines {
		p.set |= fieldLines
		p.int(int64(o.Lines[0]))
		p.int(int64(o.Lines[1]))
	}
	if !equalJSON(o.Mail, def.Mail) {
		p.json(fieldMail, o.Mail)
	}
	p.given(o.Given, def.Given)
	if !equalJSON(o.Provenance, def.Provenance) {
		p.json(fieldProvenance, o.Provenance)
	}
	binary.LittleEndian.PutUint32(p.b, p.set)
	return packed(p.b)
}

func equalJSON[T any](a, b *T) bool {
	return a == b || a != nil && b != nil && string(mustJSON(a)) == string(mustJSON(b))
}

// mustJSON writes plain data of ours, which always marshals.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("control: %T: %v", v, err))
	}
	return b
}

func (p *packer) int(n int64) { p.b = binary.AppendVarint(p.b, n) }

func (p *packer) str(s string) {
	p.b = append(binary.AppendUvarint(p.b, uint64(len(s))), s...)
}

func (p *packer) text(field uint32, s, def string) {
	if s != def {
		p.set |= field
		p.str(s)
	}
}

func (p *packer) number(field uint32, n, def int64) {
	if n != def {
		p.set |= field
		p.int(n)
	}
}

func (p *packer) time(field uint32, t, def time.Time) {
	if !t.Equal(def) {
		p.set |= field
		p.int(nanos(t))
	}
}

func (p *packer) list(field uint32, list, def []string) {
	if slices.Equal(list, def) {
		return
	}
	p.set |= field
	p.int(int64(len(list)))
	for _, s := range list {
		p.str(s)
	}
}

// hash keeps 64 hexadecimal digits in 32 bytes.
func (p *packer) hash(field uint32, s, def string) {
	if s == def {
		return
	}
	p.set |= field
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != 32 || hex.EncodeToString(raw) != s {
		p.b = append(p.b, 0)
		p.str(s)
		return
	}
	p.b = append(append(p.b, 1), raw...)
}

func (p *packer) json(field uint32, v any) {
	p.set |= field
	p.str(string(mustJSON(v)))
}

func (p *packer) given(given, def map[string]string) {
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
	p.int(int64(len(names)))
	for _, name := range names {
		p.str(name)
		p.str(given[name])
	}
}

type unpacker struct{ s string }

// unpack writes the specification of a job into out. Without whole, what was given
// on the command line and the provenance are left out where they are the job's own.
func (f *form) unpack(p packed, whole bool, out *job.Spec) {
	*out = f.spec
	set := binary.LittleEndian.Uint32([]byte(p[:4]))
	u := unpacker{string(p[4:])}
	if set&fieldHeld != 0 {
		out.Held = !out.Held
	}
	for _, x := range [...]struct {
		field uint32
		read  func(*unpacker, *job.Spec)
	}{
		{fieldName, func(u *unpacker, s *job.Spec) { s.Name = u.str() }},
		{fieldComment, func(u *unpacker, s *job.Spec) { s.Comment = u.str() }},
		{fieldBegin, func(u *unpacker, s *job.Spec) { s.Begin = fromNanos(u.int()) }},
		{fieldDeadline, func(u *unpacker, s *job.Spec) { s.Deadline = fromNanos(u.int()) }},
		{fieldNice, func(u *unpacker, s *job.Spec) { s.Nice = u.int() }},
		{fieldPriority, func(u *unpacker, s *job.Spec) { s.Priority = u.int() }},
		{fieldDepends, func(u *unpacker, s *job.Spec) { s.Depends = job.Dependency{}; u.json(&s.Depends) }},
		{fieldScriptHash, func(u *unpacker, s *job.Spec) { s.Program.ScriptHash = u.hash() }},
		{fieldScriptName, func(u *unpacker, s *job.Spec) { s.Program.ScriptName = u.str() }},
		{fieldArgs, func(u *unpacker, s *job.Spec) { s.Program.Args = u.list() }},
		{fieldEnvHash, func(u *unpacker, s *job.Spec) { s.Env.Hash = u.hash() }},
		{fieldExport, func(u *unpacker, s *job.Spec) { s.Env.Export = u.str() }},
		{fieldSet, func(u *unpacker, s *job.Spec) { s.Env.Set = u.list() }},
		{fieldStdout, func(u *unpacker, s *job.Spec) { s.Output.Stdout = u.str() }},
		{fieldStderr, func(u *unpacker, s *job.Spec) { s.Output.Stderr = u.str() }},
		{fieldStdin, func(u *unpacker, s *job.Spec) { s.Output.Stdin = u.str() }},
		{fieldWorkDir, func(u *unpacker, s *job.Spec) { s.WorkDir = u.str() }},
		{fieldFile, func(u *unpacker, s *job.Spec) { s.Source.File = u.str() }},
		{fieldHost, func(u *unpacker, s *job.Spec) { s.Source.Host = u.str() }},
		{fieldSubmit, func(u *unpacker, s *job.Spec) { s.Source.Submit = u.str() }},
		{fieldLines, func(u *unpacker, s *job.Spec) { s.Source.Lines = [2]int{int(u.int()), int(u.int())} }},
		{fieldMail, func(u *unpacker, s *job.Spec) { s.Mail = nil; u.json(&s.Mail) }},
	} {
		if set&x.field != 0 {
			x.read(&u, out)
		}
	}
	if !whole {
		return
	}
	if set&(fieldGiven|fieldGivenSome) != 0 {
		out.Source.Given = u.given(set, f.spec.Source.Given)
	}
	if set&fieldProvenance != 0 {
		out.Provenance = nil
		u.json(&out.Provenance)
	}
}

func (u *unpacker) int() int64 {
	n, size := varint(u.s)
	u.s = u.s[size:]
	return n
}

// varint is binary.Varint of a string.
func varint(s string) (int64, int) {
	x, n := uvarint(s)
	v := int64(x >> 1)
	if x&1 != 0 {
		v = ^v
	}
	return v, n
}

func uvarint(s string) (x uint64, n int) {
	for shift := uint(0); ; shift += 7 {
		b := s[n]
		n++
		x |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return x, n
		}
	}
}

func (u *unpacker) str() string {
	n, size := uvarint(u.s)
	out := u.s[size : size+int(n)]
	u.s = u.s[size+int(n):]
	return out
}

func (u *unpacker) list() []string {
	n := int(u.int())
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = u.str()
	}
	return out
}

func (u *unpacker) hash() string {
	raw := u.s[0] == 1
	u.s = u.s[1:]
	if !raw {
		return u.str()
	}
	var digits [64]byte
	var sum [32]byte
	copy(sum[:], u.s)
	hex.Encode(digits[:], sum[:])
	u.s = u.s[32:]
	return string(digits[:])
}

func (u *unpacker) json(v any) {
	if err := json.Unmarshal([]byte(u.str()), v); err != nil {
		panic(fmt.Sprintf("control: a packed %T: %v", v, err)) // packed by ourselves
	}
}

func (u *unpacker) given(set uint32, def map[string]string) map[string]string {
	n := int(u.int())
	var out map[string]string
	if set&fieldGivenSome != 0 {
		out = maps.Clone(def)
	} else if n > 0 {
		out = make(map[string]string, n)
	}
	for range n {
		name := u.str()
		out[name] = u.str()
	}
	return out
}

// nanos is a time in nanoseconds since the Unix epoch; 0 for the zero time. What is
// too early or too late for that is the earliest or the latest that can be said.
func nanos(t time.Time) int64 {
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

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
