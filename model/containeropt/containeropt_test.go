package containeropt

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestSet: an option that is taken is written again by Words, and one that is wrong says what is right.
func TestSet(t *testing.T) {
	for _, c := range []struct {
		options string // NAME=VALUE, with blanks between
		want    string // words, or what the error says behind "!"
	}{
		{"container-image=a/b:1", "--container-image=a/b:1"},
		{"container-image=-v", "!is no image"},
		{"container-image=", "!needs a value"},
		{"container-mounts=/a:/b:ro+rprivate,/c,tmpfs:/t container-mounts=/a:/b:ro+rprivate", "--container-mounts=/a:/b:ro+rprivate,/c:/c,tmpfs:/t"},
		{"container-mounts=./a:/b/../c", "--container-mounts=./a:/c"},
		{"container-mounts=a:/b", "!neither an absolute path"},
		{"container-mounts=/a:b", "!the target is not absolute"},
		{"container-mounts=/a:/b:rx", `!"rx" is no flag`},
		{"container-mounts=umount:/b", "!takes a mount away"},
		{"container-mounts=/a:", "!is no mount"},
		{"container-workdir=/a/", "--container-workdir=/a"},
		{"container-workdir=a", "!is not absolute"},
		{"container-name=base:auto", "--container-name=base"},
		{"container-name=base:exec", `!the flag "exec" is not served`},
		{"container-name=a/b", "!is no name"},
		{"container-env=A,B container-env=A", "--container-env=A,B"},
		{"container-env=A=b", "!no list of names"},
		{"container-mount-home no-container-remap-root container-entrypoint container-readonly", "--container-mount-home --no-container-remap-root --container-entrypoint --container-readonly"},
		{"container-writable container-readonly", "!contradicts --container-writable"},
		{"container-save=x", "!podman commit"},
		{"container-entrypoint-log", "!is refused"},
		{"container-hat=x", "!is no option"},
	} {
		image, opts := "", job.Container{}
		var err error
		for o := range strings.SplitSeq(c.options, " ") {
			name, value, _ := strings.Cut(o, "=")
			if err == nil {
				err = Set(&image, &opts, name, value)
			}
		}
		want, wrong := strings.CutPrefix(c.want, "!")
		got := strings.Join(Words(image, &opts), " ")
		if wrong && (err == nil || !strings.Contains(err.Error(), want)) || !wrong && (err != nil || got != want) {
			t.Errorf("%s: %s, %v, want %s", c.options, got, err, c.want)
		}
	}
	if Words("", nil) != nil || !slices.Equal(Words("a", nil), []string{"--container-image=a"}) {
		t.Error("an image alone")
	}
}

func TestReference(t *testing.T) {
	for image, want := range map[string]string{
		"a/b:1": "a/b:1", "docker://a/b:1": "a/b:1", "nvcr.io#nvidia/p:1": "nvcr.io/nvidia/p:1", "docker://me@reg.io#a:1": "reg.io/a:1",
	} {
		if got := Reference(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}
