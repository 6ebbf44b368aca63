package input

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/spec"
)

// Kind is what a text is.
type Kind string

// The kinds. Coxswain reads the first three.
const (
	Batch      Kind = "batch script"
	Native     Kind = "native"
	Kubernetes Kind = "kubernetes"
	Template   Kind = "template"
	SkyPilot   Kind = "skypilot"
	Dstack     Kind = "dstack"
	Compose    Kind = "compose"
	OtherTool  Kind = "other tool" // a file in YAML that another tool reads
	Rules      Kind = "rules"      // of a site, for cox apply
	Config     Kind = "config"     // of a server, for cox up
	SlurmConf  Kind = "slurm.conf" // what a Slurm cluster is configured by, for cox import slurm
	Python     Kind = "python"
	Notebook   Kind = "notebook"
	Dockerfile Kind = "dockerfile"
	Document   Kind = "document" // prose with examples in it
	HTML       Kind = "html"
	Binary     Kind = "binary"
	Empty      Kind = "empty"
)

// Input is a text that was recognised.
type Input struct {
	Kind   Kind
	What   string   // in words that complete "this is"
	Remedy string   // what to do with it instead; empty for what Coxswain reads
	Kinds  []string // of the manifests for Kubernetes, in the order of the documents

	Line, Col int    // from 1, where it shows; 0: the text as a whole
	Text      string // that line as written; empty if there is none to show
	Len       int    // bytes of Text from Col that show it
}

// Readable reports whether Coxswain reads texts of this kind.
func (in *Input) Readable() bool {
	return in.Kind == Batch || in.Kind == Native || in.Kind == Kubernetes
}

// Refusal is the error for a text that Coxswain does not read, nil for the others. The name is
// that of the file. remedy outranks the remedy of the input; empty: it does not. The error is a
// *spec.Error.
func (in *Input) Refusal(name, remedy string) error {
	if in.Readable() {
		return nil
	}
	if remedy == "" {
		remedy = in.Remedy
	}
	message := fmt.Sprintf("this is %s, not a batch script, a manifest or a job in the native form", in.What)
	if in.Kind == Empty {
		message = "this is " + in.What
	}
	return &spec.Error{
		File: name, Line: in.Line, Col: in.Col, Text: in.Text, Len: in.Len, ShowCol: in.Col > 0, Message: message, Remedy: remedy,
	}
}
