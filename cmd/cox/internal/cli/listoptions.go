package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"

	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// ListFlags adds -o with the formats of a list and those that only this one has, --sort-by,
// --no-headers and --limit.
func (a *App) ListFlags(cmd *cobra.Command, f *Format, wide bool, only ...Format) {
	has := append([]Format{AsJSON, AsYAML, AsName}, only...)
	if wide {
		has = append([]Format{AsWide}, has...)
	}
	FormatFlag(cmd, f, has...)
	fl := cmd.Flags()
	fl.StringVar(&a.list.SortBy, "sort-by", "", "`COLUMN` sort the table by this column; for -o json, yaml, jsonpath by a field such as .submitted")
	fl.BoolVar(&a.list.NoHeaders, "no-headers", false, "leave out the header line")
	if fl.Lookup("limit") == nil {
		fl.IntVar(&a.list.Limit, "limit", 0, "at most this many rows (0: all)")
	}
}

// checkList refuses what --sort-by and --limit cannot mean.
func (a *App) checkList() error {
	if a.list.Limit < 0 {
		return fault.New(fault.Invalid, "--limit %d: rows are counted from 0", a.list.Limit)
	}
	return nil
}

// WriteNames prints names of a list, one a line, as many as --limit allows.
func (a *App) WriteNames(names []string) error {
	if n := a.list.Limit; n > 0 && len(names) > n {
		names = names[:n]
	}
	return WriteNames(a.Out, names)
}

// WriteData prints a value of the API in a format for programs, with --sort-by and --limit. Lists
// are never null.
func (a *App) WriteData(f Format, v any) error {
	if err := a.checkList(); err != nil {
		return err
	}
	plain := f == AsJSON || f == AsYAML
	if plain && a.list.SortBy == "" && a.list.Limit == 0 {
		return f.write(a.Out, v)
	}
	data, err := plainData(v)
	if err != nil {
		return err
	}
	rows, put := rowsOf(&data)
	if a.list.SortBy != "" {
		if err := sortRows(rows, a.list.SortBy); err != nil {
			return err
		}
	}
	if n := a.list.Limit; n > 0 && len(rows) > n {
		rows = rows[:n]
		put(rows)
	}
	path, isPath := strings.CutPrefix(string(f), jsonPathPrefix)
	columns, isColumns := strings.CutPrefix(string(f), columnsPrefix)
	switch {
	case isPath:
		return writeJSONPath(a.Out, data, path)
	case isColumns:
		return a.writeColumns(rows, columns)
	}
	return f.write(a.Out, data)
}

// plainData is a value as its JSON has it.
func plainData(v any) (out any, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&out)
	return out, err
}

// rowsOf are the rows of a document: of a list its entries, of an object its rows, or with one list of
// objects those, otherwise the object alone. put replaces them.
func rowsOf(data *any) (rows []any, put func([]any)) {
	switch v := (*data).(type) {
	case []any:
		return v, func(r []any) { *data = r }
	case map[string]any:
		if list, ok := v["rows"].([]any); ok {
			return list, func(r []any) { v["rows"] = r }
		}
		var keys []string
		for k, entry := range v {
			if list, ok := entry.([]any); ok && (len(list) == 0 || isObject(list[0])) {
				keys = append(keys, k)
			}
		}
		if len(keys) == 1 {
			list, _ := v[keys[0]].([]any)
			return list, func(r []any) { v[keys[0]] = r }
		}
	}
	return []any{*data}, func([]any) {}
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

// parsePath reads a path as kubectl takes it: {.a.b}, .a.b or a.b.
func parsePath(flag, text string) (*jsonpath.JSONPath, error) {
	if !strings.HasPrefix(text, "{") && !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	p := jsonpath.New("cox").AllowMissingKeys(true)
	if err := p.Parse(text); err != nil {
		return nil, fault.New(fault.Invalid, "%s %s: %w", flag, text, err).Advise("as in %s", map[bool]string{true: "--sort-by .submitted", false: `-o jsonpath='{.jobs[*].name}'`}[flag == "--sort-by"])
	}
	return p, nil
}

// valueAt is the value of a path as text, empty where there is none.
func valueAt(p *jsonpath.JSONPath, row any) string {
	found, err := p.FindResults(row)
	if err != nil {
		return ""
	}
	var out []string
	for _, list := range found {
		for _, v := range list {
			switch x := v.Interface().(type) {
			case nil:
			case map[string]any, []any:
				b, _ := json.Marshal(x) // it came from JSON
				out = append(out, string(b))
			default:
				out = append(out, fmt.Sprint(x))
			}
		}
	}
	return strings.Join(out, ",")
}

func sortRows(rows []any, by string) error {
	p, err := parsePath("--sort-by", by)
	if err != nil {
		return err
	}
	keys, said := make(map[int]string, len(rows)), false
	order := make([]int, len(rows))
	for i, r := range rows {
		order[i], keys[i] = i, valueAt(p, r)
		said = said || keys[i] != ""
	}
	if !said && len(rows) > 0 {
		return fault.New(fault.Invalid, "--sort-by %s: no row has such a field", by).Advise("-o json shows the fields")
	}
	slices.SortStableFunc(order, func(a, b int) int { return printer.CompareTexts(keys[a], keys[b]) })
	sorted := make([]any, len(rows))
	for i, k := range order {
		sorted[i] = rows[k]
	}
	copy(rows, sorted)
	return nil
}

func writeJSONPath(w io.Writer, data any, text string) error {
	p, err := parsePath("-o jsonpath", text)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Execute(&b, data); err != nil {
		return fault.New(fault.Invalid, "-o jsonpath=%s: %w", text, err).Advise("-o json shows the fields")
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	_, err = w.Write(b.Bytes())
	return err
}

// writeColumns prints a table of paths, TITLE:.path,TITLE:.path.
func (a *App) writeColumns(rows []any, text string) error {
	t := &printer.Table{}
	var paths []*jsonpath.JSONPath
	for part := range strings.SplitSeq(text, ",") {
		title, path, ok := strings.Cut(part, ":")
		if !ok || title == "" || path == "" {
			return fault.New(fault.Invalid, "-o custom-columns=%s: %q is not TITLE:.path", text, part).Advise("as in -o custom-columns=JOB:.name,WHO:.spec.owner.user")
		}
		p, err := parsePath("-o custom-columns", path)
		if err != nil {
			return err
		}
		t.Columns, paths = append(t.Columns, printer.Column{Title: title}), append(paths, p)
	}
	for _, row := range rows {
		cells := make([]printer.Cell, len(paths))
		for i, p := range paths {
			cells[i] = printer.Cell{Text: cmp.Or(valueAt(p, row), "<none>")}
		}
		t.Rows = append(t.Rows, cells)
	}
	page := a.Page(a.Out)
	page.SortBy = "" // done
	return t.Write(a.Out, page)
}
