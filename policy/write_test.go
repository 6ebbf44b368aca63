package policy

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
)

// TestWhatIsWrittenIsRead: the canonical form is read as the same policy, and written
// again it is the same to the byte.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyPolicy().Draw(t, "policy")
		text := Write(want)
		got, _, err := readPolicy("queues.yaml", text)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s\n%s", text, d)
		}
		if again := Write(got); !bytes.Equal(text, again) {
			t.Fatalf("-first +again\n%s", cmp.Diff(string(text), string(again)))
		}
	})
}

func TestForm(t *testing.T) {
	const text = `priority: {age: 1000, max_age: 14d}
accounts:
  - lab
  - name: nlp
    parent: lab
    shares: 30
    limits: {group: {cpu: 64, memory: 1536GiB, gpu: 8, "gpu:h100": 4}, wall: 36h}
    users: [anna, ben]
  - {name: vision, parent: lab, users: [carla]}
qos:
  - {name: high, priority: 10, usage_factor: 0.5}
`
	p, _, err := readPolicy("q", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, string(Write(p))); d != "" {
		t.Error(d)
	}
	if got := string(Write(&account.Policy{})); got != "{}\n" {
		t.Errorf("%q", got)
	}
}
