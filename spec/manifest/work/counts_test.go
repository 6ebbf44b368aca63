package work

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec/manifest"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

// compiled is what the works of a text are, but for keys that are drawn anew each time.
func compiled(t *testing.T, text []byte) (string, error) {
	t.Helper()
	m, err := manifest.Read("f.json", text)
	if err != nil {
		return "", err
	}
	works, err := Compile(m)
	if err != nil {
		return "", err
	}
	type view struct {
		Job, Set, Service, Schedule any
		Options                     []string
		Warnings                    int
	}
	var out []view
	for _, w := range works {
		out = append(out, view{w.Job, w.Set, w.Service, w.Schedule, w.Options, len(w.Warnings)})
	}
	b, err := json.Marshal(out)
	return string(b), err
}

// changeAt is a document with another value at a path; nil takes it out. false: it is not changed.
func changeAt(v any, path string, change func(any) (any, bool)) (any, bool) {
	if path == "" {
		return change(v)
	}
	step, rest := path, ""
	if path[0] == '[' {
		end := strings.IndexByte(path, ']')
		step, rest = path[1:end], path[end+1:]
	} else if i := strings.IndexAny(path, ".["); i >= 0 {
		step, rest = path[:i], path[i:]
	}
	rest = strings.TrimPrefix(rest, ".")
	switch v := v.(type) {
	case map[string]any:
		inner, ok := changeAt(v[step], rest, change)
		if v[step] = inner; inner == nil {
			delete(v, step)
		}
		return v, ok
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i >= len(v) {
			return v, false
		}
		inner, ok := changeAt(v[i], rest, change)
		if v[i] = inner; inner == nil {
			return slices.Delete(v, i, i+1), ok
		}
		return v, ok
	}
	return v, false
}

// inPods are the fields of pod templates, of which the engines read what they need, and of what only describes.
var inPods = regexp.MustCompile(`(^|\.)(apiVersion|kind)$|^metadata\.|emplate\.(spec\.(containers|initContainers|volumes|restartPolicy|subdomain|host|affinity|tolerations|securityContext|termination|dns|image|service|nodeSelector)|metadata)|^spec\.(containers|initContainers|volumes|host|securityContext|termination)`)

// asBefore are honoured fields that a work does not need, and why.
var asBefore = map[string]string{
	"Job spec.ttlSecondsAfterFinished":                             noObjects,
	"JobSet spec.ttlSecondsAfterFinished":                          noObjects,
	"PyTorchJob spec.runPolicy.ttlSecondsAfterFinished":            noObjects,
	"RayJob spec.ttlSecondsAfterFinished":                          noObjects,
	"JobSet spec.network.enableDNSHostnames":                       "the pods of a gang always find each other",
	"JobSet spec.network.publishNotReadyAddresses":                 "the pods of a gang always find each other",
	"LeaderWorkerSet spec.rolloutStrategy.type":                    "it has one value",
	"PyTorchJob spec.pytorchReplicaSpecs.Master.restartPolicy":     "backoffLimit says how often",
	"PyTorchJob spec.pytorchReplicaSpecs.Worker.restartPolicy":     "backoffLimit says how often",
	"RayJob spec.shutdownAfterJobFinishes":                         "the cluster always ends with the job",
	"RayJob spec.rayClusterSpec.rayVersion":                        "the image has it",
	"RayJob spec.rayClusterSpec.workerGroupSpecs[].minReplicas":    "replicas is given",
	"RayJob spec.rayClusterSpec.workerGroupSpecs[].rayStartParams": "it is empty",
	"Deployment spec.selector.matchExpressions[].key":              selectorOnly,
	"Deployment spec.selector.matchExpressions[].operator":         selectorOnly,
	"Deployment spec.selector.matchExpressions[].values[]":         selectorOnly,
	"Job spec.plugins.svc[]":                                       "arguments of svc concern Services and rules of the network, which are not made",
	"Job spec.policies[].events[]":                                 gangEnds,
	"Job spec.policies[].action":                                   gangEnds,
}

const (
	noObjects    = "an ended job holds no objects"
	selectorOnly = "a service knows its replicas without it"
	gangEnds     = "a gang ends as a whole when one of its pods fails, whatever the policy"
)

// valueOf is a document as JSON has it.
func valueOf(t *testing.T, d *manifest.Document) (v any) {
	t.Helper()
	if err := json.Unmarshal(d.JSON(""), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// makesDifference reports whether the work of a document is another one, or none, without the value at a path or
// with another value there.
func makesDifference(t *testing.T, d *manifest.Document, path, whole string) bool {
	t.Helper()
	for _, change := range []func(v any) (any, bool){
		func(v any) (any, bool) { return nil, true },
		func(v any) (any, bool) { n, ok := v.(float64); return n + 1, ok },
		func(v any) (any, bool) { n, ok := v.(float64); return n - 1, ok },
		func(v any) (any, bool) { _, ok := v.(string); return "Recreate", ok },
		func(v any) (any, bool) { _, ok := v.(string); return "All", ok },
		func(v any) (any, bool) { _, ok := v.(string); return "etcd", ok },
		func(v any) (any, bool) { b, ok := v.(bool); return !b, ok },
		func(v any) (any, bool) { s, ok := v.(string); return s + "1", ok },
	} {
		value, ok := changeAt(valueOf(t, d), path, change)
		if !ok {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Read("f.json", text)
		if err != nil {
			continue
		}
		if _, err := Compile(m); err != nil {
			return true
		}
		if got, err := compiled(t, text); err == nil && got != whole {
			return true
		}
	}
	return false
}

// TestEveryHonouredFieldCounts takes each field that the table calls honoured out of the documents of
// spec/manifest/testdata, or changes it, but for those of pods: what is made of the document is then
// another work, or an error.
func TestEveryHonouredFieldCounts(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	n := 0
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := manifest.Read(path, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Documents {
			if d.Kind.Use != fields.Work && d.Kind.Use != fields.Schedule && d.Kind.Use != fields.Serving || d.Kind.Name == "Service" || d.Kind.Name == "HorizontalPodAutoscaler" {
				continue
			}
			sorted, err := json.Marshal(valueOf(t, d))
			if err != nil {
				t.Fatal(err)
			}
			whole, err := compiled(t, sorted)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			for _, u := range d.Uses(fields.Local) {
				if u.Mark != fields.Honoured || inPods.MatchString(u.Path) {
					continue
				}
				n++
				name := d.Kind.Name + " " + regexp.MustCompile(`\[\d+\]`).ReplaceAllString(u.Path, "[]")
				if asBefore[name] == "" && !makesDifference(t, d, u.Path, whole) {
					t.Errorf("%s (%s) makes no difference", name, path)
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d fields were taken out", n)
	}
}
