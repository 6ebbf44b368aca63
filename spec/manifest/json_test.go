package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"

	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// kubeJSON are the documents of a text as the clients of Kubernetes send them.
func kubeJSON(data []byte) (out []any, err error) {
	in := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		text, err := kubeyaml.ToJSON(doc)
		if err != nil {
			return nil, err
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, v)
		}
	}
}

// TestJSONIsWhatKubernetesReads compares the JSON of each document with what the client library of
// Kubernetes makes of the same text, so that a pod template reaches a cluster as it was meant.
func TestJSONIsWhatKubernetesReads(t *testing.T) {
	for _, path := range documentFiles(t) {
		f, data := readTestdata(t, path)
		want, err := kubeJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if m := want[0].(map[string]any); m["kind"] == "List" {
			want = m["items"].([]any)
		}
		for i, d := range f.Documents {
			var got any
			if err := json.Unmarshal(d.JSON(""), &got); err != nil {
				t.Fatalf("%s: %v in %s", path, err, d.JSON(""))
			}
			if !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s, %s:\ngot  %v\nwant %v", path, d.Label(), got, want[i])
			}
		}
	}
}

// TestPlainValues compares plain values of YAML with what Kubernetes makes of them.
func TestPlainValues(t *testing.T) {
	for _, text := range []string{
		"1", "-1", "+1", "0644", "0o644", "0x1F", "0b11", "1_000", "1.5", ".5", "1e3", "1E3", "1.", "-.5", "+.5", "1e400", "12345678901234567890", "123456789012345678901234567890",
		"yes", "No", "on", "OFF", "y", "n", "true", "False", "TRUE", "tRue", "null", "~", "Null", "NULL", "nUll", "", "-", "+", ".", "1:30", "1.2.3", "2026-01-31", "2026-01-31T12:00:00Z",
		"64Gi", "500m", "0x", "0o9", "09", "1__0", "_1", ".inf", "-.inf", ".nan", "'1'", `"true"`, "a: b", "[1, 0x2]", "!!str 1", "0.1", "1e-7", "100000000000000000000000.0", "-0", "-0.0", "1_0.5",
	} {
		data := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\nx: " + text + "\n")
		want, err := kubeJSON(data)
		docs, mine := readAny(t, data)
		if err != nil {
			if mine == nil && len(docs) > 0 {
				t.Logf("%s: Kubernetes: %v, here %v", text, err, docs[0])
			}
			continue
		}
		if mine != nil {
			t.Errorf("%s: %v, Kubernetes reads %v", text, mine, want[0])
			continue
		}
		if !reflect.DeepEqual(docs[0], want[0]) {
			t.Errorf("%s is %v, in Kubernetes %v", text, docs[0], want[0])
		}
	}
}

// readAny is the JSON of documents whatever their kind.
func readAny(t *testing.T, data []byte) (out []any, err error) {
	t.Helper()
	texts, err := yaml.ParseStream(spec.Source{Name: "x", Data: data}, yaml.Limits{Size: MaxSize, Depth: MaxDepth, Aliases: true})
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		var v any
		if err := json.Unmarshal(NodeJSON(text.Root), &v); err != nil {
			t.Fatalf("%v in %s", err, NodeJSON(text.Root))
		}
		out = append(out, v)
	}
	return out, nil
}
