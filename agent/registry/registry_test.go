package registry

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCredentialsAreKeptForTheirUserAlone(t *testing.T) {
	home := t.TempDir()
	d := FolderOf(func(name string) string { return map[string]string{"HOME": home, "XDG_CONFIG_HOME": "relative"}[name] })
	if list, err := d.Load(); len(list) != 0 || err != nil {
		t.Fatalf("%v %v", list, err)
	}
	want := []Credential{{Host: "docker.io", User: "a", Password: "b:c"}, {Host: "reg.io:5000", User: "$oauth", Password: `d "e" \f`}}
	for range 2 { // also over files that are there
		if err := d.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := d.Load(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	files, err := filepath.Glob(filepath.Join(home, ".config", "coxswain", "registry", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
	for _, f := range append(files, string(d)) {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %s", f, st.Mode())
		}
	}
	const netrc = "machine auth.docker.io login a password b:c\nmachine reg.io login $oauth password \"d \\\"e\\\" \\\\f\"\n"
	if text, err := os.ReadFile(d.netrcFile()); err != nil || string(text) != netrc {
		t.Errorf("%q %v", text, err)
	}
	if err := os.WriteFile(d.AuthFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Load(); err == nil {
		t.Error("a broken file was read")
	}
}

func TestHostOf(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": Hub, "team/busybox:1": Hub, "docker.io/a/b": Hub, "index.docker.io/a/b": Hub, "localhost/a:1": "localhost",
		"127.0.0.1:5000/a": "127.0.0.1:5000", "docker://me@nvcr.io#nvidia/x:1": "nvcr.io", "/images/a.sif": "", "./a": "",
	} {
		if got := HostOf(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
