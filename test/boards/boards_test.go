package boards

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write deploy/grafana/*.json anew")

const folder = "../../deploy/grafana"

// board is one board of boards.yaml.
type board struct {
	File, Title, About string
	Panels             []panel
}

// panel is one panel of a board, with its queries by their legends.
type panel struct {
	Title, Unit, Kind string
	Queries           yaml.MapSlice
}

func readBoards(t *testing.T) (all []board) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "boards.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBoards compares the JSON files with those that boards.yaml makes.
func TestBoards(t *testing.T) {
	for _, b := range readBoards(t) {
		name := filepath.Join(folder, b.File+".json")
		want, err := json.MarshalIndent(b.grafana(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil { //nolint:gosec // for everybody
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what boards.yaml makes (%v): go test ./test/boards -run TestBoards -update", name, err)
		}
	}
}

type object = map[string]any

// grafana is the board in Grafana's own form.
func (b board) grafana() object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	panels, x, y, tall := []object{}, 0, 0, 0
	for i, p := range b.Panels {
		kind, width, height, unit := "timeseries", 12, 8, p.Unit
		if p.Kind == "number" {
			kind, width, height = "stat", 6, 4
		}
		if unit == "" {
			unit = "short"
		}
		if x+width > 24 || height != tall && x > 0 {
			x, y = 0, y+tall
		}
		tall = height
		targets := []object{}
		for k, q := range p.Queries {
			targets = append(targets, object{"refId": string(rune('A' + k)), "datasource": source, "expr": q.Value, "legendFormat": q.Key, "instant": kind == "stat", "range": kind != "stat"})
		}
		defaults, options := object{"unit": unit, "min": 0}, object{"legend": object{"calcs": []string{}, "displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}}
		if p.Kind == "stack" {
			defaults["custom"] = object{"stacking": object{"mode": "normal", "group": "A"}, "fillOpacity": 30}
		}
		if kind == "stat" {
			options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "none", "colorMode": "value", "textMode": "auto", "justifyMode": "auto", "orientation": "auto", "wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard"}
			if p.Title == "Version" {
				options["textMode"] = "name"
			}
		}
		panels = append(panels, object{
			"id": i + 1, "type": kind, "title": p.Title, "datasource": source, "targets": targets,
			"gridPos": object{"x": x, "y": y, "w": width, "h": height}, "fieldConfig": object{"defaults": defaults, "overrides": []any{}}, "options": options,
		})
		x += width
	}
	return object{
		"uid": "coxswain-" + b.File, "title": "Coxswain: " + b.Title, "description": b.About, "tags": []string{"coxswain"}, "schemaVersion": 39, "version": 1,
		"editable": true, "graphTooltip": 1, "refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "timezone": "browser", "panels": panels,
		"links":       []object{{"type": "dashboards", "title": "Coxswain", "tags": []string{"coxswain"}, "icon": "external link", "tooltip": "", "url": "", "targetBlank": false, "asDropdown": true, "includeVars": true, "keepTime": true}},
		"annotations": object{"list": []any{}},
		"templating":  object{"list": []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}},
	}
}

// TestBoardsFitGrafana reads the files as Grafana does: each panel has a number, a place of its own within the 24
// columns, a kind with the options that Grafana's schema (kind dashboard, schemaVersion 39) requires, and queries with
// letters of their own, to the data source that the board's variable chooses.
//
// Seen to fail with panels one above the other, and without an option of a legend.
func TestBoardsFitGrafana(t *testing.T) {
	required := map[string][]string{
		"timeseries": {"legend.calcs", "legend.displayMode", "legend.placement", "legend.showLegend", "tooltip.mode", "tooltip.sort"},
		"stat": {
			"colorMode", "graphMode", "justifyMode", "orientation", "percentChangeColorMode", "reduceOptions.calcs", "showPercentChange", "textMode", "wideLayout",
		},
	}
	for _, b := range readBoards(t) {
		text, err := os.ReadFile(filepath.Join(folder, b.File+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			UID, Title string
			Panels     []struct {
				ID          int
				Type, Title string
				GridPos     struct{ X, Y, W, H int }
				Options     map[string]any
				Datasource  struct{ Type, UID string }
				Targets     []struct {
					RefID, Expr string
					Datasource  struct{ Type, UID string }
				}
			}
			Templating struct {
				List []struct{ Name, Type, Query string }
			}
		}
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if v := read.Templating.List; read.UID == "" || len(read.UID) > 40 || len(v) != 1 || v[0].Name != "datasource" || v[0].Type != "datasource" || v[0].Query != "prometheus" {
			t.Errorf("%s: uid %q, variables %+v", b.File, read.UID, v)
		}
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range read.Panels {
			wrong := func(format string, args ...any) {
				t.Errorf("%s: %s: "+format, append([]any{b.File, p.Title}, args...)...)
			}
			if ids[p.ID] || p.ID == 0 || p.Title == "" || len(p.Targets) == 0 || len(p.Targets) > 26 {
				wrong("number %d, %d queries", p.ID, len(p.Targets))
			}
			ids[p.ID] = true
			if g := p.GridPos; g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
				wrong("it is at %+v", g)
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						wrong("it is on %s", other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if required[p.Type] == nil {
				wrong("Grafana has no panel %q", p.Type)
			}
			for _, option := range required[p.Type] {
				if at, inside, _ := strings.Cut(option, "."); p.Options[at] == nil || inside != "" && p.Options[at].(object)[inside] == nil {
					wrong("it has no option %s", option)
				}
			}
			letters := map[string]bool{}
			for _, q := range p.Targets {
				if letters[q.RefID] || q.RefID == "" || q.Expr == "" || q.Datasource.UID != "${datasource}" || q.Datasource.Type != "prometheus" || p.Datasource != q.Datasource {
					wrong("query %+v", q)
				}
				letters[q.RefID] = true
			}
		}
	}
}

// queries are the queries of all boards, by where they are.
func queries(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, b := range readBoards(t) {
		for _, p := range b.Panels {
			for _, q := range p.Queries {
				out[fmt.Sprintf("%s: %s: %s", b.File, p.Title, q.Key)] = fmt.Sprint(q.Value)
			}
		}
	}
	return out
}

// rules are deploy/prometheus/rules.yaml.
type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.UnmarshalWithOptions(text, &r, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// exported are the metrics of the servers with their labels, as their pages of reference say, which
// tests beside the servers hold to the code.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{"process_resident_memory_bytes": {"job"}, "process_cpu_seconds_total": {"job"}} // of every Go program
	name := regexp.MustCompile("`(cox_\\w+)`")
	for _, page := range []string{"metrics.md", "gateway.md"} {
		text, err := os.ReadFile("../../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "| `cox_") {
				continue
			}
			cells := strings.Split(line, "|")
			labels, histogram := cells[len(cells)-2], strings.Contains(line, "histogram")
			if page == "metrics.md" {
				labels = cells[3]
			}
			for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
				known := regexp.MustCompile(`\([^)]*\)|:.*`).ReplaceAllString(labels, "")
				list := append(strings.Fields(strings.ReplaceAll(known, ",", " ")), "job", "instance")
				if !histogram {
					out[m[1]] = list
					continue
				}
				for _, part := range []string{"_bucket", "_sum", "_count"} {
					out[m[1]+part] = append(slices.Clone(list), "le")
				}
			}
		}
	}
	return out
}

var (
	textForm     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'`)
	spanForm     = regexp.MustCompile(`\[\w+\]`)
	selectorForm = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}`)
	groupForm    = regexp.MustCompile(`\b(?:by|without|on)\s*\(([^)]*)\)`)
	wordForm     = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
	languageForm = regexp.MustCompile(`^(sum|max|topk|rate|increase|histogram_quantile|absent|vector|or)$`)
)

// problemsOf lists what a query names that no server exports. recorded are the rules' own series, by
// name, with their labels.
func problemsOf(query string, known, recorded map[string][]string) (out []string) {
	query = spanForm.ReplaceAllString(textForm.ReplaceAllString(query, ""), "")
	labelsOf := func(name string) ([]string, bool) {
		if of, ok := known[name]; ok {
			return of, true
		}
		of, ok := recorded[name]
		return append([]string{"job", "instance"}, of...), ok
	}
	check := func(name, labels string) {
		of, ok := labelsOf(name)
		if !ok {
			out = append(out, "no server exports "+name)
			return
		}
		for _, l := range wordForm.FindAllString(labels, -1) {
			if !slices.Contains(of, l) {
				out = append(out, fmt.Sprintf("%s has no label %s (it has %v)", name, l, of))
			}
		}
	}
	grouped := ""
	for _, m := range groupForm.FindAllStringSubmatch(query, -1) {
		grouped += m[1] + " "
	}
	for _, m := range selectorForm.FindAllStringSubmatch(query, -1) {
		check(m[1], m[2])
	}
	names := 0
	for _, w := range wordForm.FindAllString(groupForm.ReplaceAllString(selectorForm.ReplaceAllString(query, "$1"), ""), -1) {
		if !languageForm.MatchString(w) {
			check(w, grouped)
			names++
		}
	}
	if names == 0 {
		out = append(out, "it names no metric")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestQueriesNameWhatServersExport looks for each name and label of the boards and rules among those of
// the servers, and for the labels that legends and texts of alerts show.
//
// Seen to fail with cox_pool_states in a rule, and with sum by (user) in a board.
func TestQueriesNameWhatServersExport(t *testing.T) {
	known := exported(t)
	if len(known) < 60 || !slices.Contains(known["cox_gateway_replicas"], "state") || !slices.Contains(known["cox_job_start_seconds_bucket"], "devices") {
		t.Fatalf("the pages of reference say of the metrics: %v", known)
	}
	recorded := map[string][]string{}
	all := queries(t)
	for _, r := range readRules(t) {
		all[fmt.Sprintf("rules.yaml: %s%s: %s", r.Record, r.Alert, r.Labels["size"])] = r.Expr
		if r.Record != "" {
			recorded[r.Record] = []string{"devices", "service"}
		}
	}
	for _, where := range slices.Sorted(maps.Keys(all)) {
		for _, p := range problemsOf(all[where], known, recorded) {
			t.Errorf("%s: %s\n%s", where, p, all[where])
		}
	}
	for query, want := range map[string]string{
		`sum(cox_jobs)`:                          "",
		`sum by (user) (cox_jobs)`:               "cox_jobs has no label user (it has [state job instance])",
		`rate(cox_job[5m])`:                      "no server exports cox_job",
		`cox_devices{state="user",pool!="x"}`:    "cox_devices has no label pool (it has [state job instance])",
		`rate(cox_decision_seconds{le="1"}[1h])`: "no server exports cox_decision_seconds",
		`vector(1)`:                              "it names no metric",
	} {
		if got := strings.Join(problemsOf(query, known, nil), "; "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestEachAlertHasARunbook: each alert leads to a section of the runbook, which has no others, and says
// how bad it is and what happened.
func TestEachAlertHasARunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbooks/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		sections[title] = text
	}
	used := map[string]bool{}
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		used[r.Alert] = true
		for _, mark := range []string{"**Meaning.**", "**Look.**", "**Do.**"} {
			if !strings.Contains(sections[r.Alert], mark) {
				t.Errorf("docs/runbooks/alerts.md: %s has no %s", r.Alert, mark)
			}
		}
		if want := "https://github.com/coxswain-sched/coxswain/blob/main/docs/runbooks/alerts.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: severity %q, %v", r.Alert, s, r.Annotations)
		}
	}
	for title := range sections {
		if !used[title] {
			t.Errorf("docs/runbooks/alerts.md: no alert is called %s", title)
		}
	}
}
