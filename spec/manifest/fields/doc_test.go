package fields

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pages of docs/reference anew")

const pages = "../../../docs/reference/"

// TestDocPages keeps the pages of docs/reference what the table says.
func TestDocPages(t *testing.T) {
	made := map[string]string{
		"manifest.md":            overviewPage(),
		"manifest-jobs.md":       kindsPage(jobsHead, "Job", "CronJob", "JobSet"),
		"manifest-training.md":   kindsPage(trainingHead, "PyTorchJob", "MPIJob", "MPIJobV1", "VolcanoJob"),
		"manifest-ray.md":        kindsPage(rayHead, "RayJob", "RayCluster"),
		"manifest-services.md":   kindsPage(servicesHead, "Deployment", "StatefulSet", "LeaderWorkerSet", "Service", "HorizontalPodAutoscaler"),
		"manifest-pods.md":       typesPage(podsHead, "PodSpec", "ObjectMeta"),
		"manifest-containers.md": containersPage(),
		"manifest-volumes.md":    typesPage(volumesHead, "Volume"),
	}
	for name, text := range made {
		if *update {
			if err := os.WriteFile(pages+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(pages + name)
		if err != nil || !bytes.Equal(have, []byte(text)) {
			t.Errorf("%s is not what the table says (make docs writes it anew): %v", name, err)
		}
	}
}

const marksText = "`make docs` makes this page from the table in spec/manifest/fields.\n\n" +
	"**yes**: Coxswain does what the field says. **as written**: the pod gets it. **no effect**: a warning says so. **refused**: an error says so, with file, line and path. " +
	"A field without a row does as the field that it is in. A field whose value is the default, false or empty is never refused.\n"

const (
	jobsHead = "# Jobs in manifests\n\nThese kinds become jobs of Coxswain; a CronJob becomes a schedule. All pods of a document are one gang: they start together, or none does. [Kubernetes manifests](manifest.md) has the rest, " +
		"[pods](manifest-pods.md) and [containers](manifest-containers.md) the fields of pod templates.\n\n"
	trainingHead = "# Training jobs in manifests\n\nA PyTorchJob, an MPIJob and a Job of Volcano become jobs of Coxswain. All pods of a document are one gang. [Kubernetes manifests](manifest.md) has the rest, " +
		"[pods](manifest-pods.md) and [containers](manifest-containers.md) the fields of pod templates.\n\n"
	rayHead = "# Ray in manifests\n\nA RayJob and a RayCluster become jobs: the head and the workers are one gang. [Kubernetes manifests](manifest.md) has the rest, " +
		"[pods](manifest-pods.md) and [containers](manifest-containers.md) the fields of pod templates.\n\n"
	servicesHead = "# Services in manifests\n\nA Deployment, a StatefulSet and a LeaderWorkerSet become services of Coxswain ([run a service](../how-to/run-a-service.md)), with the Service and the HorizontalPodAutoscaler of the same file. " +
		"[Kubernetes manifests](manifest.md) has the rest, [pods](manifest-pods.md) and [containers](manifest-containers.md) the fields of pod templates.\n\n"
	podsHead = "# Pods in manifests\n\nThe fields of a pod spec, wherever it is, and of metadata. [Containers](manifest-containers.md) and [volumes](manifest-volumes.md) have pages of their own. " +
		"On Kubernetes a field that reaches beyond the job needs the pool's `allow`.\n\n"
	volumesHead = "# Volumes in manifests\n\nThe volumes of a [pod](manifest-pods.md). Values of Secrets are kept by the server and reach the job as [its secrets](manifest.md) do.\n\n"
)

// markText is a mark in words.
func markText(m Mark) string {
	return map[Mark]string{Honoured: "yes", Passed: "as written", NoEffect: "no effect", Refused: "refused"}[m]
}

// row is one row of a table of fields.
func row(b *strings.Builder, path string, f *Field) {
	text := f.Rule.Text
	if f.Rule.Remedy != "" {
		text += ". Instead: " + f.Rule.Remedy
	}
	fmt.Fprintf(b, "| %s |", strings.ReplaceAll(path, "|", `\|`))
	for e := range f.Rule.Marks {
		cell := markText(f.Rule.Marks[e])
		if s := f.Rule.Serve[e]; s != 0 && s != f.Rule.Marks[e] {
			cell += "; in a service " + markText(s)
		}
		fmt.Fprintf(b, " %s |", cell)
	}
	fmt.Fprintf(b, " %s |\n", strings.ReplaceAll(text, "|", `\|`))
}

const tableHead = "| field | this machine | Slurm | Kubernetes | |\n|---|---|---|---|---|\n"

// apart are the types that have a table of their own.
var apart = []string{"PodSpec", "ObjectMeta", "Container", "InitContainer", "EphemeralContainer", "Volume", "ResourceRequirements", "PodTemplateSpec"}

// rows writes the fields of a type that have a rule, and those of the types in it.
func rows(b *strings.Builder, path string, t *Type, seen []string) {
	if slices.Contains(seen, t.Name) {
		return
	}
	seen = append(seen, t.Name)
	for i := range t.Fields {
		f := &t.Fields[i]
		here := strings.TrimPrefix(path+"."+f.Name, ".")
		inner := f.Type
		for ; inner.Elem != nil; inner = inner.Elem {
			here += map[Form]string{List: "[]", Map: ".*"}[f.Type.Form]
		}
		plain := path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, f.Name)
		if f.Rule != nil && !plain {
			row(b, here, f)
		}
		nothing := f.Rule != nil && f.Rule.Marks[Local] != Honoured && f.Rule.Marks[Local] != Passed && f.Rule.Serve[Local] == 0
		if inner.Form == Object && !plain && !nothing && !slices.Contains(apart, inner.Name) {
			rows(b, here, inner, seen)
		}
	}
}

func kindsPage(head string, names ...string) string {
	var b strings.Builder
	b.WriteString(head + marksText)
	for _, name := range names {
		i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.typeName == name })
		fmt.Fprintf(&b, "\n## %s (%s)\n\n%s", Kinds[i].Label(), Kinds[i].APIVersion(), tableHead)
		rows(&b, "", Kinds[i].Type(), nil)
	}
	return b.String()
}

func typesPage(head string, names ...string) string {
	var b strings.Builder
	b.WriteString(head + marksText)
	for _, name := range names {
		title := map[string]string{"PodSpec": "The pod spec", "ObjectMeta": "metadata", "Volume": "volumes"}[name]
		fmt.Fprintf(&b, "\n## %s\n\n%s", title, tableHead)
		rows(&b, map[string]string{"ObjectMeta": "metadata", "Volume": "volumes[]"}[name], types()[name], nil)
	}
	return b.String()
}

func containersPage() string {
	var b strings.Builder
	b.WriteString("# Containers in manifests\n\nThe containers of a [pod](manifest-pods.md), and what they ask for. Limits fill requests that are not given; an amount is a number or a text.\n\n" + marksText + "\n## containers\n\n" + tableHead)
	rows(&b, "containers[]", types()["Container"], nil)
	b.WriteString("\n## initContainers\n\nAs containers, but:\n\n" + tableHead)
	own := &Type{Name: "own", Form: Object, Fields: types()["InitContainer"].Fields[:4]}
	rows(&b, "initContainers[]", own, []string{"Probe"})
	b.WriteString("\n## resources\n\n" + tableHead)
	rows(&b, "resources", types()["ResourceRequirements"], nil)
	b.WriteString("\n| resource | is |\n|---|---|\n")
	for _, d := range Devices {
		text := d.Text
		if f := resourceField(d.Name); f != nil {
			text += map[DeviceClass]string{Network: "; on this machine and Slurm: no effect, " + networkRule.Text, OtherDevice: "; on this machine and Slurm: refused, " + otherRule.Text}[d.Class]
		}
		fmt.Fprintf(&b, "| %s | %s |\n", d.Name, text)
	}
	b.WriteString("| DOMAIN/NAME | another device of a plugin; on this machine and Slurm: refused, " + otherRule.Text + " |\n")
	return b.String()
}

func overviewPage() string {
	var b strings.Builder
	b.WriteString("# Kubernetes manifests\n\n`cox submit FILE`, `cox run FILE` and `cox apply -f FILE` take manifests as they are. `make docs` makes this page from the table in spec/manifest/fields.\n\n" +
		"```yaml\napiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  completions: 4\n  parallelism: 4\n  completionMode: Indexed\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: main\n        image: pytorch/pytorch\n        command: [python, train.py]\n        resources: {limits: {nvidia.com/gpu: 8}}\n```\n\n" +
		"- A file is YAML or JSON, of one or more documents or a `List`; at most 50 MiB and 24 levels. Anchors, aliases and merge keys are read, up to 200,000 values and 4 MiB of text.\n" +
		"- A gang has at most 100,000 pods (JobSet, MPIJob, Volcano Job: 10,000) in 128 roles; templates and ConfigMaps are at most 4 MiB together.\n" +
		"- Values mean what they mean to kubectl: `yes` is true, `0644` is octal, a number is no text, null is a field that is left out.\n" +
		"- Every field is looked up. One that its kind does not have, that is missing or that has a value of another type is an error with file, line, document, path, and the name that is meant.\n" +
		"- What an engine does with a field is in the tables of [jobs](manifest-jobs.md), [training jobs](manifest-training.md), [Ray](manifest-ray.md), [services](manifest-services.md), [pods](manifest-pods.md), [containers](manifest-containers.md) and [volumes](manifest-volumes.md).\n" +
		"- A template is rendered first: `helm template CHART`, `kubectl kustomize DIRECTORY`, `envsubst < FILE`, `jinja2 FILE VALUES`. The error names the command.\n\n## Kinds that are read\n\n| kind | apiVersion | becomes |\n|---|---|---|\n")
	uses := map[Use]string{Work: "a job", Serving: "a service, or a part of one", Schedule: "a schedule", Data: "files and variables of the pods that name it"}
	for _, k := range Kinds {
		versions := k.APIVersion()
		for _, v := range k.Also {
			versions += ", " + joinVersion(k.Group, v)
		}
		text := uses[k.Use]
		if k.Use == Aside {
			text = "is not made: " + k.Note
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", k.Name, versions, text)
	}
	b.WriteString("\n## Kinds that are taken note of\n\nThey often are beside work in a file. They are not made, and a warning says so.\n\n| kinds | group | why |\n|---|---|---|\n")
	for _, a := range asides {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(strings.Fields(a.kinds), ", "), strings.TrimSuffix(a.group, "."), a.note)
	}
	b.WriteString("\n## Kinds that are refused by name\n\nThe error has the document and the line, and says what to write instead. Other kinds are refused too.\n\n| kind | instead |\n|---|---|\n")
	names := make([]string, 0, len(refusals))
	for name := range refusals {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %s |\n", name, refusals[name].remedy)
	}
	b.WriteString("\n## Labels and annotations\n\nAll labels and annotations stay with their pods. These mean something to a queue or a scheduler. An annotation `coxswain.sh/NAME` is an option of sbatch.\n\n" + tableHead)
	for i := range types()["labels"].Fields {
		row(&b, types()["labels"].Fields[i].Name, &types()["labels"].Fields[i])
	}
	return b.String()
}
