package lab

import (
	"context"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/image"
)

// Spoil has what runs in pods fail on a node before it begins, until the test ends: the image Cox
// there says to the crew that it was started before. Others have the same image as before.
func (l *Lab) Spoil(t testing.TB, name string) {
	t.Helper()
	n := l.nodeByName(t, name)
	whole, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	shell, err := busyboxEntries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spoilt := image.Image{Tag: whole.Tag, Arch: whole.Arch, Command: whole.Command, Env: whole.Env, Entries: shell}
	const program = "usr/local/bin/cox-pod"
	for _, e := range whole.Entries {
		e.Name = "whole/" + e.Name
		spoilt.Entries = append(spoilt.Entries, e)
	}
	spoilt.Entries = append(spoilt.Entries, Entry{Name: program, Text: []byte("#!/bin/sh\n/whole/" + program + " \"$@\" && mkdir /cox/run\n")})
	file := l.labFile("spoilt." + name + ".tar")
	if err := spoilt.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := l.importImages(t.Context(), n, file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.importImages(context.Background(), n, l.labFile("cox.tar")); err != nil {
			t.Error(err)
		}
	})
}
