package input

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// yamlEnds are the ends of the names of files in YAML or JSON, templates of them included.
var yamlEnds = []string{".yaml", ".yml", ".json"}

// isYAML reports whether a text is YAML or JSON: by the end of its name, a template's ending
// aside, or because its first line that is neither empty nor a comment is a key or a brace, and
// not a command.
func isYAML(base, text string) bool {
	for _, end := range templateEnds {
		base = strings.TrimSuffix(base, end.end)
	}
	return slices.ContainsFunc(yamlEnds, func(end string) bool { return strings.HasSuffix(base, end) }) || looksLikeYAML(text)
}

func looksLikeYAML(text string) bool {
	if runsCox(text) {
		_, text, _ = strings.Cut(text, "\n")
	}
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		switch trimmed := strings.TrimSpace(l); {
		case strings.HasPrefix(l, "#!"), strings.HasPrefix(l, "#SBATCH"):
			return false
		case trimmed == "", strings.HasPrefix(trimmed, "#"), trimmed == "---":
			continue
		case strings.HasPrefix(trimmed, "{{"), strings.HasPrefix(trimmed, "{%"):
			continue // a template's
		default:
			key, _, ok := strings.Cut(trimmed, ":")
			return strings.HasPrefix(trimmed, "{") || ok && !strings.ContainsAny(key, " \t=$()|;&\"'/")
		}
	}
	return false
}

// yamlDocument is what the top level of a document says.
type yamlDocument struct {
	values map[string]string // of scalars as written, "" of others
	lines  map[string]int
	list   bool // it is a list
}

func (d *yamlDocument) has(names ...string) bool {
	for _, n := range names {
		if _, ok := d.values[n]; !ok {
			return false
		}
	}
	return true
}

func (d *yamlDocument) hasOneOf(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return d.has(n) })
}

// recogniseYAML recognises texts in YAML or JSON, and templates of them.
func recogniseYAML(name, base, text string) (Input, bool) {
	if !isYAML(base, text) {
		return Input{}, false
	}
	docs := topLevels(text)
	manifests, isManifest := manifestsOf(docs)
	if in, ok := yamlTemplate(name, text, isManifest); ok {
		if isManifest {
			in.Kinds = manifests.Kinds
			in.What += " of " + manifestText(manifests.Kinds)
		}
		return in, true
	}
	if isManifest {
		if !startsText(text, "{") {
			manifests.Text = lineOf(text, manifests.Line)
			manifests.Col, manifests.Len = valuePlace(manifests.Text)
		}
		return manifests, true
	}
	for i := range docs {
		for _, t := range tools {
			if t.is(&docs[i], base) {
				return Input{Kind: t.kind, What: t.what, Remedy: strings.ReplaceAll(t.remedy, "%s", shownName(name, "FILE"))}, true
			}
		}
	}
	return Input{Kind: Native}, true
}

// jobKeys say what a job runs; one of them is in every job.
var jobKeys = []string{"command", "script", "groups"}

// tools are other tools' files in YAML. Each has keys that no job in the native form has.
var tools = []struct {
	kind         Kind
	what, remedy string
	is           func(d *yamlDocument, base string) bool
}{
	{
		Compose, "a file of Docker Compose", "write each service that is to be a job in the native form (image, command, gpus); docker compose -f %s up starts it without Coxswain",
		func(d *yamlDocument, base string) bool {
			return d.has("services") || strings.HasPrefix(base, "docker-compose") && d.hasOneOf("version", "networks", "volumes")
		},
	},
	{
		SkyPilot, "a task of SkyPilot", "write it in the native form (docs/reference/native.md): num_nodes is nodes, accelerators: A100:8 is gpus_per_node: A100:8, setup and run are script",
		func(d *yamlDocument, _ string) bool {
			return d.has("resources") && d.hasOneOf("run", "setup", "service") || d.hasOneOf("file_mounts", "num_nodes") && d.hasOneOf("run", "setup") || d.has("setup", "run")
		},
	},
	{
		Dstack, "a configuration of dstack", "write it in the native form (docs/reference/native.md): nodes, gpus_per_node, image; commands are script",
		func(d *yamlDocument, base string) bool {
			return slices.Contains([]string{"task", "service", "dev-environment", "fleet", "gateway", "volume"}, d.values["type"]) || strings.HasSuffix(base, ".dstack.yml")
		},
	},
	{
		OtherTool, "the description of a Helm chart", "render the chart: helm template DIRECTORY > rendered.yaml, and submit that",
		func(d *yamlDocument, base string) bool {
			return base == "chart.yaml" && d.has("apiVersion", "name", "version")
		},
	},
	{
		OtherTool, "the values of a Helm chart", "render the chart with them: helm template DIRECTORY -f %s > rendered.yaml, and submit that",
		func(d *yamlDocument, base string) bool {
			return base == "values.yaml" && !d.hasOneOf(jobKeys...)
		},
	},
	{
		OtherTool, "an environment of conda", "create it (conda env create -f %s), and activate it in a batch script",
		func(d *yamlDocument, _ string) bool {
			return !d.hasOneOf(jobKeys...) && d.has("dependencies") && d.hasOneOf("channels", "name")
		},
	},
	{
		OtherTool, "a cluster of Ray (ray up)", "write a job that starts Ray on the nodes that it has (docs/reference/native.md)",
		func(d *yamlDocument, _ string) bool {
			return d.has("cluster_name") && d.hasOneOf("provider", "available_node_types")
		},
	},
	{
		Rules, "the rules of a site", "an administrator puts them in force: cox apply -f %s",
		func(d *yamlDocument, base string) bool {
			return !d.hasOneOf(jobKeys...) && (base == "queues.yaml" || d.hasOneOf("accounts", "fair_share", "cohorts", "flavors"))
		},
	},
	{
		Config, "the configuration of a server", "name it when the server starts: cox up --config %s",
		func(d *yamlDocument, base string) bool {
			return !d.hasOneOf(jobKeys...) && (d.hasOneOf("room", "listen") || d.has("state") && d.hasOneOf("auth", "jobs", "pools"))
		},
	},
	{
		OtherTool, "a workflow of GitHub Actions", "write what its steps run into a batch script",
		func(d *yamlDocument, _ string) bool { return d.has("jobs") && d.hasOneOf("on", "'on'", "\"on\"") },
	},
}

// topLevels are the top levels of the documents of a text. JSON is read as such; of YAML the
// keys at the first column count, so that a text that is no YAML (a template) has them too.
func topLevels(text string) []yamlDocument {
	if startsText(text, "{") {
		if docs := jsonTopLevels(text); len(docs) > 0 {
			return docs
		}
	}
	var out []yamlDocument
	d, n := newDocument(), 0
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimRight(l, "\r\n")
		switch {
		case strings.HasPrefix(l, "---"):
			out, d = append(out, d), newDocument()
		case l == "", l[0] == ' ', l[0] == '\t', l[0] == '#':
		case strings.HasPrefix(l, "- "):
			d.list = true
		default:
			key, value, ok := strings.Cut(l, ":")
			key = strings.Trim(key, `"`)
			if _, twice := d.values[key]; !ok || twice || strings.ContainsAny(key, " {}") {
				continue
			}
			value, _, _ = strings.Cut(value, " #")
			d.values[key], d.lines[key] = strings.Trim(strings.TrimSpace(value), `"'`), n
		}
	}
	return append(out, d)
}

func newDocument() yamlDocument {
	return yamlDocument{values: map[string]string{}, lines: map[string]int{}}
}

// jsonTopLevels are the top levels of a text in JSON, the items of a list of manifests too.
func jsonTopLevels(text string) []yamlDocument {
	var out []yamlDocument
	in := json.NewDecoder(strings.NewReader(text))
	for {
		var object map[string]json.RawMessage
		if err := in.Decode(&object); err != nil {
			return out
		}
		d := newDocument()
		for k, v := range object {
			var s string
			_ = json.Unmarshal(v, &s) // anything else has no text
			d.values[k], d.lines[k] = s, 1
		}
		out = append(out, d)
	}
}

// manifestsOf recognises manifests for Kubernetes.
func manifestsOf(docs []yamlDocument) (Input, bool) {
	in := Input{Kind: Kubernetes}
	for i := range docs {
		d := &docs[i]
		if !d.has("apiVersion", "kind") {
			continue
		}
		if in.Line == 0 {
			in.Line = d.lines["kind"]
		}
		in.Kinds = append(in.Kinds, kindText(d.values["kind"]))
	}
	if len(in.Kinds) == 0 {
		return Input{}, false
	}
	in.What = manifestText(in.Kinds)
	return in, true
}

// kindText is a kind as it can be shown; a template may stand in its place.
func kindText(kind string) string {
	if kind == "" || strings.ContainsAny(kind, "{}$ ") || len(kind) > 63 {
		return "of a kind that is not known"
	}
	return kind
}

// manifestText says how many manifests of which kinds there are.
func manifestText(kinds []string) string {
	if len(kinds) == 1 {
		return "a manifest for Kubernetes (" + kinds[0] + ")"
	}
	var list []string
	for _, k := range kinds {
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	const most = 6
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("%d more kinds", more))
	}
	return fmt.Sprintf("a file of %d manifests for Kubernetes (%s)", len(kinds), strings.Join(list, ", "))
}

// valuePlace is where the value of a line "key: value" stands, from 1, and how long it is.
func valuePlace(l string) (col, length int) {
	key, value, _ := strings.Cut(l, ":")
	blank := len(value) - len(strings.TrimLeft(value, " "))
	return len(key) + 1 + blank + 1, len(strings.TrimSpace(value))
}

// lineOf is a line of a text by its number from 1.
func lineOf(text string, number int) string {
	n := 0
	for l := range strings.Lines(text) {
		if n++; n == number {
			return strings.TrimRight(l, "\r\n")
		}
	}
	return ""
}
