package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestReadsWhatEncodingJSONReads compares with the slow way, on any strings.
func TestReadsWhatEncodingJSONReads(t *testing.T) {
	list := func(t *rapid.T, name string) []string {
		v := rapid.SliceOf(rapid.String()).Draw(t, name)
		if len(v) == 0 {
			return nil
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		in := api.Submit{
			Form: rapid.String().Draw(t, "form"), File: rapid.String().Draw(t, "file"), Text: rapid.String().Draw(t, "text"),
			Args: list(t, "args"), ScriptArgs: list(t, "script args"), Command: list(t, "command"), Environ: list(t, "environ"),
			Dir: rapid.String().Draw(t, "dir"), Host: rapid.String().Draw(t, "host"), Strict: rapid.Bool().Draw(t, "strict"), Pool: rapid.String().Draw(t, "pool"), Pods: rapid.String().Draw(t, "pods"),
			TestOnly: rapid.Bool().Draw(t, "test only"), Preview: rapid.Bool().Draw(t, "preview"),
		}
		if rapid.Bool().Draw(t, "more") {
			mask := rapid.Uint32().Draw(t, "mask")
			in.Umask = &mask
			in.Provenance = &job.Provenance{Image: rapid.String().Draw(t, "image"), Notes: list(t, "notes")}
		}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indent") {
			if b, err = json.MarshalIndent(in, "", "\t"); err != nil {
				t.Fatal(err)
			}
		}
		var want api.Submit
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		got, err := readSubmission(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		got.Text = string(got.script)
		if diff := cmp.Diff(want, got.Submit); diff != "" {
			t.Fatalf("%s\n%s", b, diff)
		}
	})
}

const goodSubmission = `{"form":"sb\u00e9\ud83d\ude00\/","text":"a\nb\\\"","args":["x", "y"],"environ":[],"umask":18,"strict":false,"provenance":{"git":null,"notes":["z"]},"dir":null}`

// TestAnyBytesAreAnsweredLikeEncodingJSON damages a good body anywhere.
func TestAnyBytesAreAnsweredLikeEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(goodSubmission)
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			if len(b) == 0 {
				break
			}
			i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				b = append(b[:i:i], b[i+1:]...)
			case 1:
				b[i] = rapid.Byte().Draw(t, "byte")
			case 2:
				b = b[:i+1]
			}
		}
		var want api.Submit
		dec := json.NewDecoder(strings.NewReader(string(b)))
		dec.DisallowUnknownFields()
		werr := dec.Decode(&want)
		if werr == nil && dec.More() {
			return // the slow way reads the first of several values
		}
		got, err := readSubmission(b)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: kind %s: %v", b, fault.KindOf(err), err)
			}
			if fold := strings.ToLower(string(b)); werr == nil && fold == string(b) && !strings.Contains(fold, "\ufffd") && json.Valid(b) && len(b) > 0 && !hasHigh(b) {
				t.Fatalf("%q is good for encoding/json: %v", b, err)
			}
			return
		}
		if werr != nil {
			t.Fatalf("%q is read as %+v; encoding/json: %v", b, got, werr)
		}
	})
}

// hasHigh reports bytes above ASCII: encoding/json mends text that is not UTF-8,
// and we refuse it.
func hasHigh(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return true
		}
	}
	return false
}

func TestBadSubmissionsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"", "an object is missing"},
		{"#!/bin/sh\nsrun x\n", "an object is missing"},
		{`{"text":"a`, "a string does not end"},
		{`{"text":7}`, "a string is missing"},
		{`{"args":["a" "b"]}`, "a comma or ] is missing"},
		{`{"frobnicate":1}`, `no field "frobnicate"`},
		{`{"umask":"x"}`, "a whole number is missing"},
		{`{"umask":1.5}`, "a comma or } is missing"},
		{`{"umask":-1}`, "a whole number is missing"},
		{`{"umask":99999999999}`, "a whole number is missing"},
		{`{"strict":1}`, `field "strict"`},
		{`{"provenance":{"gut":1}}`, `field "provenance"`},
		{`{"text":"\x"}`, "escape"},
		{`{} {}`, "more behind its end"},
		{`{"provenance":` + strings.Repeat("[", 200), "nested too deeply"},
	} {
		_, err := readSubmission([]byte(c.body))
		if err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.body, err)
		}
	}
}

func sample() []byte {
	b, _ := json.Marshal(api.Submit{
		Form: api.FormSbatch, File: "train.sbatch", Dir: "/home/anna/run", Host: "login1", Environ: os.Environ(),
		Text: "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1\n#SBATCH -t 10 -o out-%j\n" + strings.Repeat("echo \"some line of a script\" | tee log\n", 100),
	})
	return b
}

func BenchmarkReadSubmission(b *testing.B) {
	body := sample()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := readSubmission(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	body := sample()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var v api.Submit
		if err := json.Unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzSubmissions reads any body in both ways.
func FuzzSubmissions(f *testing.F) {
	f.Add(sample())
	f.Add([]byte(goodSubmission))
	f.Add([]byte(`{"form":"native","file":"job.yaml","text":"name: a\nrun: hostname\n","args":["--nice=5"],"script_args":["--lr"],"umask":18}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 64<<10 {
			return
		}
		if err := agree(body); err != nil {
			t.Fatal(err)
		}
	})
}

// agree reads a submission in both ways. Ours is stricter with names in another case,
// text that is not UTF-8 and what is nested deeply; what it takes means the same.
func agree(body []byte) error {
	got, err := readSubmission(body)
	if err != nil {
		return nil
	}
	var want api.Submit
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&want); err != nil {
		return fmt.Errorf("is taken, and encoding/json says %w", err)
	}
	got.Text = string(got.script)
	a, b := must(json.Marshal(got.Submit)), must(json.Marshal(want))
	if string(a) != string(b) {
		return fmt.Errorf("is read as\n%s\nencoding/json reads\n%s", a, b)
	}
	return nil
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
