package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/internal/image"
)

// unpack are the files of an archive, and their heads.
func unpack(t *testing.T, b []byte) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	files, heads := map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, heads
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], heads[h.Name] = text, h
	}
}

// TestImage: the same files make the same bytes, in both forms: each part of the layout has the
// digest and the size by which others name it, and the form of `docker save` names the same
// layer. What a container gets is in the layer. That containerd takes it, the tests of
// driver/kube show. Seen to fail with a size less
// by one.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cox", "cox-pod", "cox-slurm"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("program "+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) []byte {
		t.Helper()
		i, err := image.Cox("coxswain.sh/cox:1.2", "arm64", dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := write("one.tar")
	fileTime := time.Unix(1e9, 0)
	if err := os.Chtimes(filepath.Join(dir, "cox"), fileTime, fileTime); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole, write("two.tar")) {
		t.Error("the same files make other bytes")
	}
	files, heads := unpack(t, whole)
	for name, h := range heads {
		if h.Uid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: of %d, at %s", name, h.Uid, h.ModTime)
		}
	}
	for name, text := range files {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && sum != "" && sum != fmt.Sprintf("%x", sha256.Sum256(text)) {
			t.Errorf("%s holds something else", name)
		}
	}
	type part struct {
		Digest      string
		Size        int
		Annotations map[string]string
	}
	follow := func(p part, into any) []byte {
		t.Helper()
		text := files["blobs/sha256/"+strings.TrimPrefix(p.Digest, "sha256:")]
		if len(text) != p.Size || len(text) == 0 {
			t.Fatalf("%+v is of %d bytes", p, len(text))
		}
		if into != nil {
			read(t, text, into)
		}
		return text
	}
	var index struct{ Manifests []part }
	read(t, files["index.json"], &index)
	if index.Manifests[0].Annotations["io.containerd.image.name"] != "coxswain.sh/cox:1.2" {
		t.Errorf("it is called %v", index.Manifests[0].Annotations)
	}
	var manifest struct {
		Config part
		Layers []part
	}
	follow(index.Manifests[0], &manifest)
	var config struct {
		Architecture string
		Config       struct{ User string }
		RootFS       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	follow(manifest.Config, &config)
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Errorf("%+v", config)
	}
	var saved []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	read(t, files["manifest.json"], &saved)
	if s := saved[0]; s.RepoTags[0] != "coxswain.sh/cox:1.2" || !strings.HasSuffix(manifest.Layers[0].Digest, filepath.Base(s.Layers[0])) || files[s.Config] == nil {
		t.Errorf("as docker saves it: %+v", s)
	}
	inside, modes := unpack(t, follow(manifest.Layers[0], nil))
	if string(inside["usr/local/bin/cox"]) != "program cox" || modes["usr/local/bin/cox"].Mode != 0o755 || modes["var/lib/coxswain/"].Uid != image.Server {
		t.Errorf("%v", modes)
	}
}

func read(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
