// Package image writes container images without a registry: one archive that is an OCI layout
// and what `docker save` writes in one, so `ctr images import`, `docker load`, `k3s ctr images
// import`, `kind load image-archive` and podman take it.
//
// The same files make the same bytes: times are zero, owners are root, nothing is compressed
// and nothing names the machine on which it was written.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Entry is a file of an image: a program, a text, a directory or a link.
type Entry struct {
	Name string // without a slash before it; one behind it makes a directory
	Text []byte
	Link string // what a symbolic link leads to
	Mode int64  // 0: 0o755
	User int    // who has it, and the group of that number
}

// Image is one image of one layer, for Linux.
type Image struct {
	Tag     string // whole: coxswain.sh/agent:1
	Arch    string // as Go names it
	Command []string
	Env     []string // NAME=VALUE
	User    string   // UID:GID; empty: root
	Labels  map[string]string
	Entries []Entry
}

// Write writes an image to a file.
func (i *Image) Write(file string) error {
	whole, err := i.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(file, whole, 0o644)
}

// Encode is the archive of an image.
func (i *Image) Encode() ([]byte, error) {
	layer, err := tarArchive(i.Entries)
	if err != nil {
		return nil, err
	}
	blobs := map[string][]byte{}
	keep := func(kind string, text []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(text))
		blobs["blobs/sha256/"+sum] = text
		return descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: "sha256:" + sum, Size: len(text)}
	}
	wholeLayer := keep("layer.v1.tar", layer)
	config := keep("config.v1+json", encodeJSON(map[string]any{
		"architecture": i.Arch, "os": "linux",
		"config": map[string]any{"Cmd": i.Command, "Env": i.Env, "User": i.User, "Labels": i.Labels},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{wholeLayer.Digest}},
	}))
	manifest := keep("manifest.v1+json", encodeJSON(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []descriptor{wholeLayer},
	}))
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.Tag, "org.opencontainers.image.ref.name": i.Tag[strings.LastIndexByte(i.Tag, ':')+1:]}
	manifest.Platform = map[string]string{"architecture": i.Arch, "os": "linux"}
	entries := []Entry{
		{Name: "oci-layout", Text: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{Name: "index.json", Text: encodeJSON(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{manifest}})},
		{Name: "manifest.json", Text: encodeJSON([]map[string]any{{"Config": config.blobName(), "RepoTags": []string{i.Tag}, "Layers": []string{wholeLayer.blobName()}}})},
		{Name: "blobs/"},
		{Name: "blobs/sha256/"},
	}
	for _, d := range []descriptor{config, manifest, wholeLayer} {
		entries = append(entries, Entry{Name: d.blobName(), Text: blobs[d.blobName()], Mode: 0o644})
	}
	for k := range entries {
		if entries[k].Mode == 0 && !strings.HasSuffix(entries[k].Name, "/") {
			entries[k].Mode = 0o644
		}
	}
	return tarArchive(entries)
}

// descriptor names a part of an OCI layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

func (d descriptor) blobName() string {
	return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
}

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("image: " + err.Error()) // plain data
	}
	return b
}

// tarArchive is a tar file of some entries.
func tarArchive(entries []Entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Mode: e.Mode, Size: int64(len(e.Text)), Typeflag: tar.TypeReg, Uid: e.User, Gid: e.User, Format: tar.FormatUSTAR}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		switch {
		case e.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		case strings.HasSuffix(e.Name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("image: %s: %w", e.Name, err)
		}
		if _, err := w.Write(e.Text); err != nil {
			return nil, fmt.Errorf("image: %s: %w", e.Name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
