package slurmjson

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Parser is the version of Slurm's data parser whose shape is written.
const Parser = "v0.0.42"

// CheckForm refuses a form of --json that is not written here.
func CheckForm(form string) error {
	switch strings.TrimPrefix(form, "data_parser/") {
	case "", Parser, "v0.0.41", "v0.0.40", "v0.0.43", "list":
		return nil // these differ in nothing that is written here
	}
	return fault.New(fault.Unsupported, "--json=%s is not written here", form).Advise("--json is the form %s", Parser)
}

// w appends JSON. comma is what stands before the next field or element.
type w struct {
	b     []byte
	comma bool
}

func (w *w) next() {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
}

func (w *w) key(name string) {
	w.next()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *w) open(name string, bracket byte) {
	if name == "" {
		w.next()
	} else {
		w.key(name)
	}
	w.b = append(w.b, bracket)
	w.comma = false
}

func (w *w) close(bracket byte) {
	w.b = append(w.b, bracket)
	w.comma = true
}

func (w *w) raw(name, json string) {
	w.key(name)
	w.b = append(w.b, json...)
}

func (w *w) text(name string, v []byte) {
	w.key(name)
	w.b = fastclient.AppendString(w.b, string(v))
}

func (w *w) str(name, v string) {
	w.key(name)
	w.b = fastclient.AppendString(w.b, v)
}

func (w *w) int(name string, v int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *w) bool(name string, v bool) {
	w.key(name)
	w.b = strconv.AppendBool(w.b, v)
}

// list writes texts.
func (w *w) list(name string, v ...string) {
	w.open(name, '[')
	for _, s := range v {
		w.next()
		w.b = fastclient.AppendString(w.b, s)
	}
	w.close(']')
}

// number writes a number as the data parser does: {set, infinite, number}.
func (w *w) number(name string, set, infinite bool, v int64) {
	w.key(name)
	w.b = append(w.b, `{"set":`...)
	w.b = strconv.AppendBool(w.b, set)
	w.b = append(w.b, `,"infinite":`...)
	w.b = strconv.AppendBool(w.b, infinite)
	w.b = append(w.b, `,"number":`...)
	w.b = strconv.AppendInt(w.b, v, 10)
	w.b = append(w.b, '}')
}

func (w *w) set(name string, v int64) { w.number(name, true, false, v) }

// some is set unless it is zero.
func (w *w) some(name string, v int64) { w.number(name, v != 0, false, v) }

func (w *w) unset(names ...string) {
	for _, n := range names {
		w.raw(n, `{"set":false,"infinite":false,"number":0}`)
	}
}

func (w *w) empty(names ...string) {
	for _, n := range names {
		w.raw(n, `""`)
	}
}

// exit writes an exit code.
func (w *w) exit(name string, status, signal int64, pending bool) {
	word := "SUCCESS"
	switch {
	case pending:
		word = "PENDING"
	case signal > 0:
		word = "SIGNALED"
	case status != 0:
		word = "ERROR"
	}
	w.open(name, '{')
	w.list("status", word)
	w.number("return_code", !pending, false, status)
	w.open("signal", '{')
	w.some("id", signal)
	w.str("name", signalName(signal))
	w.close('}')
	w.close('}')
}

// flush writes out what was appended when it is much.
func (w *w) flush(out io.Writer, force bool) error {
	if len(w.b) < 60<<10 && !force {
		return nil
	}
	_, err := out.Write(w.b)
	w.b = w.b[:0]
	return err
}

// tail writes meta, errors and warnings, and ends the document.
func (w *w) tail(c *face.Command, args []string) {
	w.open("meta", '{')
	w.open("plugin", '{')
	w.empty("type", "name")
	w.str("data_parser", "data_parser/"+Parser)
	w.empty("accounting_storage")
	w.close('}')
	w.open("client", '{')
	w.empty("source")
	w.str("user", c.Getenv("USER"))
	w.empty("group")
	w.close('}')
	w.list("command", args...)
	w.raw("slurm", `{"version":{"major":"24","micro":"0","minor":"11"},"release":"24.11.0","cluster":"`+jobs.Cluster+`"}`)
	w.close('}')
	w.list("errors")
	w.list("warnings")
	w.b = append(w.b, "}\n"...)
}

// begin opens the document and its list.
func begin(list string) *w {
	w := &w{b: make([]byte, 0, 64<<10)}
	w.b = append(w.b, '{')
	w.open(list, '[')
	return w
}

// end closes the list and the document and writes all of it.
func (w *w) end(c *face.Command) error {
	w.close(']')
	w.tail(c, append([]string{c.Name}, os.Args[1:]...))
	return w.flush(c.Out, true)
}
