package slurmjson

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
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

func (w *w) openValue(name string, bracket byte) {
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

func (w *w) rawField(name, json string) {
	w.key(name)
	w.b = append(w.b, json...)
}

func (w *w) textField(name string, v []byte) {
	w.key(name)
	w.b = fastclient.AppendString(w.b, string(v))
}

func (w *w) stringField(name, v string) {
	w.key(name)
	w.b = fastclient.AppendString(w.b, v)
}

func (w *w) intField(name string, v int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *w) boolField(name string, v bool) {
	w.key(name)
	w.b = strconv.AppendBool(w.b, v)
}

// stringList writes texts.
func (w *w) stringList(name string, v ...string) {
	w.openValue(name, '[')
	for _, s := range v {
		w.next()
		w.b = fastclient.AppendString(w.b, s)
	}
	w.close(']')
}

// numberField writes a number as the data parser does: {set, infinite, number}.
func (w *w) numberField(name string, set, infinite bool, v int64) {
	w.key(name)
	w.b = append(w.b, `{"set":`...)
	w.b = strconv.AppendBool(w.b, set)
	w.b = append(w.b, `,"infinite":`...)
	w.b = strconv.AppendBool(w.b, infinite)
	w.b = append(w.b, `,"number":`...)
	w.b = strconv.AppendInt(w.b, v, 10)
	w.b = append(w.b, '}')
}

func (w *w) setNumber(name string, v int64) { w.numberField(name, true, false, v) }

// setNonZero is set unless it is zero.
func (w *w) setNonZero(name string, v int64) { w.numberField(name, v != 0, false, v) }

func (w *w) unsetNumbers(names ...string) {
	for _, n := range names {
		w.rawField(n, `{"set":false,"infinite":false,"number":0}`)
	}
}

func (w *w) emptyStrings(names ...string) {
	for _, n := range names {
		w.rawField(n, `""`)
	}
}

// exitCode writes an exit code.
func (w *w) exitCode(name string, status, signal int64, pending bool) {
	word := "SUCCESS"
	switch {
	case pending:
		word = "PENDING"
	case signal > 0:
		word = "SIGNALED"
	case status != 0:
		word = "ERROR"
	}
	w.openValue(name, '{')
	w.stringList("status", word)
	w.numberField("return_code", !pending, false, status)
	w.openValue("signal", '{')
	w.setNonZero("id", signal)
	w.stringField("name", signalName(signal))
	w.close('}')
	w.close('}')
}

// flushLarge writes out what was appended when it is much.
func (w *w) flushLarge(out io.Writer, force bool) error {
	if len(w.b) < 60<<10 && !force {
		return nil
	}
	_, err := out.Write(w.b)
	w.b = w.b[:0]
	return err
}

// writeMeta writes meta, errors and warnings, and ends the document.
func (w *w) writeMeta(c *slurmcmd.Command, args []string) {
	w.openValue("meta", '{')
	w.openValue("plugin", '{')
	w.emptyStrings("type", "name")
	w.stringField("data_parser", "data_parser/"+Parser)
	w.emptyStrings("accounting_storage")
	w.close('}')
	w.openValue("client", '{')
	w.emptyStrings("source")
	w.stringField("user", c.Getenv("USER"))
	w.emptyStrings("group")
	w.close('}')
	cluster, _ := c.ClusterName() // the server answered before
	w.stringList("command", args...)
	w.rawField("slurm", `{"version":{"major":"24","micro":"0","minor":"11"},"release":"24.11.0","cluster":`+string(fastclient.AppendString(nil, cluster))+`}`)
	w.close('}')
	w.stringList("errors")
	w.stringList("warnings")
	w.b = append(w.b, "}\n"...)
}

// beginDocument opens the document and its list.
func beginDocument(list string) *w {
	w := &w{b: make([]byte, 0, 64<<10)}
	w.b = append(w.b, '{')
	w.openValue(list, '[')
	return w
}

// endDocument closes the list and the document and writes all of it.
func (w *w) endDocument(c *slurmcmd.Command) error {
	w.close(']')
	w.writeMeta(c, append([]string{c.Name}, os.Args[1:]...))
	return w.flushLarge(c.Out, true)
}
