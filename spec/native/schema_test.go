package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// typed is a node as an editor's reader of YAML resolves it.
func typed(n *yaml.Node) any {
	switch {
	case n.Kind == yaml.Null:
		return nil
	case n.Kind == yaml.List:
		out := []any{}
		for _, i := range n.Items {
			out = append(out, typed(i))
		}
		return out
	case n.Kind == yaml.Mapping:
		out := map[string]any{}
		for _, f := range n.Fields {
			out[f.Name] = typed(f.Value)
		}
		return out
	case n.Quoted:
		return n.Text
	case n.Text == "true" || n.Text == "false":
		return n.Text == "true"
	case regexp.MustCompile(`^[-+]?[0-9]+$`).MatchString(n.Text):
		return json.Number(strings.TrimPrefix(strings.TrimLeft(n.Text, "0")+"0"[:btoi(strings.Trim(n.Text, "0") == "")], "+"))
	}
	if f, err := strconv.ParseFloat(n.Text, 64); err == nil && regexp.MustCompile(`^[-+0-9.eE]+$`).MatchString(n.Text) {
		return f
	}
	return n.Text
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("native.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("native.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// beyondSchema are bad files that only the parser can tell: fields that contradict
// each other, texts whose grammar a schema does not have, what is no YAML.
var beyondSchema = map[string]bool{
	"flat-beside-groups": true, "exclusive": true, "nodes-tasks": true, "time-min": true,
	"service/no-scale": true, "service/nothing-to-scale": true, "service/one-bound": true, "service/bounds": true, "service/zero": true, "service/to-zero": true,
	"service/metric": true, "service/metric-name": true, "service/target": true, "service/name": true, "service/host": true, "service/drain": true,
	"service/spare": true, "service/step": true, "service/canary": true, "service/port-twice": true, "service/port-unnamed": true, "service/port-number-twice": true, "service/probe-port": true,
	"service/probe-both": true, "service/probe-empty": true, "service/update-both": true, "service/update-zero": true, "service/probe-timeout": true,
	"service/route-path": true,
	"twice":              true, "bomb": true, "indentation": true, "licences": true, "either": true,
}

// TestSchemaAgreesWithParser: what the parser takes the schema takes, and it refuses
// every bad file that a schema can.
func TestSchemaAgreesWithParser(t *testing.T) {
	s := compiled(t)
	for _, c := range []struct {
		pattern string
		good    bool
	}{{"testdata/good/*.yaml", true}, {"../../examples/*.yaml", true}, {"testdata/service.yaml", true}, {"testdata/bad/*.yaml", false}, {"testdata/service/*.yaml", false}} {
		files, err := filepath.Glob(c.pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v %v", c.pattern, files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			base := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml"), "bad/")
			doc, err := yaml.Parse(spec.Source{Name: file, Data: data})
			if err != nil {
				if c.good || !beyondSchema[base] {
					t.Errorf("%s: %v", file, err)
				}
				continue
			}
			if c.good {
				if _, _, err := parseDocument(doc, file, options()); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
			if err := s.Validate(typed(doc.Root)); (err == nil) != (c.good || beyondSchema[base]) {
				t.Errorf("%s: the schema says %v", file, err)
			}
		}
	}
}

// TestSchemaRefusesWhatTheParserRefuses, value by value.
func TestSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	s := compiled(t)
	for _, c := range []struct {
		line string
		good bool
	}{
		{"tasks: 0", false},
		{"tasks: 1", true},
		{`tasks: "1"`, false},
		{"tasks: 1.5", false},
		{"nodes: 0", false},
		{"nodes: 2-4", true},
		{"nodes: 2-", true},
		{"nodes: x", false},
		{"memory: 32", false},
		{"memory: 32G", true},
		{"memory: 32GiB", true},
		{"memory: all", true},
		{"memory: G", false},
		{"time: 90", false},
		{"time: 90m", true},
		{"time: 1:30:00", true},
		{"time: 1-0", true},
		{"time: soon", false},
		{"time: unlimited", true},
		{"requeue: yes", false},
		{"requeue: true", true},
		{"notify: {webhook: 'https://example.org/x', on: [begin, end, fail]}", true},
		{"notify: {on: [end]}", false},
		{"notify: end", false},
		{"rerun: same-nodes", true},
		{"rerun: elsewhere", false},
		{"retries: 3", true},
		{"retries: 0", false},
		{"retries: {backoff: 30s}", false},
		{"retries: {count: 3, backoff: 0s, on: oom}", true},
		{"retries: {count: 3, on: [1, 75, oom, node, timeout, error]}", true},
		{"retries: {count: 3, on: [0]}", false},
		{"retries: {count: 3, on: [256]}", false},
		{"retries: {count: 3, on: crash}", false},
		{"retries: {count: 3, on: []}", false},
		{"retries: {count: 3, backoff: 30}", false},
		{"nice: -5", true},
		{"nice: 3000000000", false},
		{"gpus: []", false},
		{"gpus: {type: h100}", true},
		{"gpus: {tpye: h100}", false},
		{"gpus: h100:2", true},
		{"gpus: [h100:2, 1]", true},
		{"cpus: 0.5", true},
		{"cpus: -1", false},
		{"env: {A: 1}", true},
		{"env: {1A: 1}", false},
		{"env: [A]", false},
		{"distribution: plane=4", true},
		{"distribution: plane=0", false},
		{"groups: []", false},
		{"per_gpu: {gpus: 1}", false},
		{"per_task: {gpus: 1}", true},
		{"mail: {types: end, too: a}", false},
		{"array: {indices: 1-3}", true},
		{"array: 7", true},
		{"version: v2", false},
		{"name: 7", true},
		{"name: [a]", false},
		{"x: 1", false},
		{"args: a", false},
		{"name:", false},
	} {
		text := c.line + "\ncommand: a\n"
		if strings.HasPrefix(c.line, "args") {
			text = c.line + "\nscript: a\n"
		}
		doc, err := yaml.Parse(spec.Source{Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		byLaw := s.Validate(typed(doc.Root))
		_, _, _, byUs := Parse(spec.Source{Data: []byte(text)}, options())
		if (byLaw == nil) != c.good || (byUs == nil) != c.good {
			t.Errorf("%s: schema %v, parser %v", c.line, byLaw, byUs)
		}
	}
}

func TestDocSchema(t *testing.T) {
	golden(t, "../../docs/reference/native.schema.json", string(Schema()))
}

// TestDocTable keeps docs/reference/native.md and native-long-forms.md what the tables of fields say.
func TestDocTable(t *testing.T) {
	golden(t, "../../docs/reference/native.md", document(t))
	golden(t, "../../docs/reference/native-long-forms.md", documentLongForms())
	golden(t, "../../docs/reference/native-services.md", documentServices())
}

func documentServices() string {
	var b strings.Builder
	b.WriteString("# Services in YAML\n\nA document with `kind: service` describes what stays: it is kept alive, has an address, is updated without a gap and scaled by its load. " +
		"[Services](../how-to/run-a-service.md) shows it at work.\n\n```yaml\n" +
		"kind: service\nname: chat\ncommand: exec python3 server.py --port $PORT\nports: [http]\nreplicas: {min: 1, max: 4}\nscale: {metric: in_flight, target: 8}\n" +
		"probes: {readiness: /health}\ngpus: 1\n```\n\n" +
		"A replica is a job, and a service has the fields of a job ([native.md](native.md)) for it. It has no time limit unless the file gives one, and is requeued after a preemption and after a lost node. " +
		"The first task of a replica serves; a replica of several nodes is a gang, as a job is. There is no field for volumes or caches of models: replicas see what jobs see, which is the directories of their nodes (in containers those of `container_options: {mounts: …}`), and on Kubernetes the `paths` of the pool. Keep model files in one of these. `make docs` makes this page from the tables in spec/native.\n\n## Fields\n\n")
	table(&b, serviceFields)
	b.WriteString("\nThese fields of a job are refused: ")
	for i, f := range notForServices {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "`%s` (%s)", f.name, f.why)
	}
	b.WriteString(".\n\n## ports\n\n")
	table(&b, portFields)
	b.WriteString("\n## replicas\n\n")
	table(&b, boundsFields)
	b.WriteString("\n## probes\n\n")
	table(&b, probesFields)
	b.WriteString("\nA probe is a path (`/health`), or has these fields; one of http, tcp and exec:\n\n")
	table(&b, probeFields)
	b.WriteString("\n## update\n\n")
	table(&b, updateFields)
	b.WriteString("\n## log\n\n")
	table(&b, logFields)
	b.WriteString("\nThe program writes into a pipe, and its supervisor into the file. FILE.rotated-1 is the newest file that was rotated; `cox logs` reads them all. In a pool of Slurm or of Kubernetes `log` is refused: there the output is Slurm's, or the kubelet's to rotate.\n")
	b.WriteString("\n## scale\n\n")
	table(&b, scaleFields)
	b.WriteString("\n## route\n\n")
	table(&b, routeFields)
	return b.String()
}

func document(t *testing.T) string {
	t.Helper()
	example := func(name string) string {
		data, err := os.ReadFile(filepath.Join("../../examples", name))
		if err != nil {
			t.Fatal(err)
		}
		return "```yaml\n" + string(data) + "```\n"
	}
	var b strings.Builder
	b.WriteString("# Jobs in YAML\n\n```yaml\nname: train\ngpus: 2\ntime: 4h\ncommand: torchrun --nproc-per-node 2 train.py\n```\n" + `
` + "`command`" + ` runs in every task of the job. ` + "`script`" + ` runs once, on the first node, and starts tasks with srun, as a batch script does.
One of the two is required; every other field has a default.

- ` + "`cox convert FILE --to native`" + ` writes this form of an sbatch script, ` + "`--to sbatch`" + ` converts back. Both report what has no
  counterpart.
- Options of sbatch before the file (` + "`cox submit -N 4 job.yaml`" + `) replace the field that sets the same. An option without such a
  field is refused by name.
- Unknown fields, fields given twice, numbers in quotes and sizes without a unit are errors with line and column.
- Text needs no quotes unless it contains a colon and a blank, begins with a special character, or is empty. Anchors, aliases,
  merge keys, tags and several documents in a file are not read. A file has at most 1 MiB.
- A size ends in K, M, G or T (powers of 1024). A time ends in d, h, m or s, or has one of Slurm's forms with colons.
- [native.schema.json](native.schema.json) is for editors: put ` + "`# yaml-language-server: $schema=native.schema.json`" + ` on the first line.

` + "`make docs`" + ` makes this page from the tables of fields in spec/native. [native-long-forms.md](native-long-forms.md) has the fields in braces:
amounts, secrets, GPUs, array, schedule, retries, mail, notify, container_options, kubernetes.

## Fields of the job

`)
	table(&b, append(slices.Clip(jobFields), scheduleField))
	b.WriteString("\n## Fields of a group\n\nA job with one group of tasks has these fields at the top; a job with several has them in each entry of `groups`.\n\n")
	table(&b, groupFields)
	b.WriteString(`
A group takes from a node per_node, per_task for each task there, and per_gpu for each GPU there. total is the sum over all
nodes. The short fields stand for one of these. gpus, gpus_per_node and gpus_per_task exclude each other, as do the four fields
of memory, and cpus and cpus_per_gpu.
`)
	b.WriteString("\n## Several groups\n\nDifferent tasks that start together or not at all:\n\n" + example("het.yaml"))
	return b.String()
}

func documentLongForms() string {
	var b strings.Builder
	b.WriteString("# Long forms in YAML jobs\n\nFields of [jobs in YAML](native.md) that have fields of their own. `make docs` makes this page from the tables in spec/native.\n\n" +
		"```yaml\ngpus: {type: h100, count: 2, memory: 80G}\nretries: {count: 3, backoff: 1m, on: [75, oom, node]}\nmail: {types: [end, fail], to: anna@example.org}\n```\n")
	b.WriteString("\n## Amounts: per_node, per_task, per_gpu, total\n\n")
	table(&b, amountFields)
	b.WriteString("\n## Secrets\n\n")
	table(&b, secretFields)
	b.WriteString("\n## GPUs\n\n")
	table(&b, gpuFields)
	b.WriteString("\n## array\n\n")
	table(&b, arrayFields)
	b.WriteString("\n## schedule\n\nThe expression alone (`schedule: \"0 3 * * *\"`), or these fields:\n\n")
	table(&b, scheduleFields)
	b.WriteString("\n## retries\n\n")
	table(&b, retryFields)
	b.WriteString("\n## mail\n\n")
	table(&b, mailFields)
	b.WriteString("\n## notify\n\n")
	table(&b, notifyFields)
	b.WriteString("\n## container_options\n\nThe options of the pyxis plugin of Slurm, in the same terms ([containers.md](../how-to/containers.md)).\n\n")
	table(&b, containerFields)
	b.WriteString("\n## kubernetes\n\nThe pool's setting `allow` lists the fields that jobs may set ([kubernetes-pods.md](../explanation/kubernetes-pods.md#pods)); `shm` and `node_selector` are always allowed.\n\n")
	table(&b, podFields)
	return b.String()
}

func table[T any](b *strings.Builder, fields []field[T]) {
	b.WriteString("| field | value | meaning | sbatch |\n|---|---|---|---|\n")
	for _, f := range fields {
		option := ""
		if f.sbatch != "" {
			option = "--" + f.sbatch
		}
		cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", f.name, cell(f.form.text), cell(f.doc), option)
	}
}
