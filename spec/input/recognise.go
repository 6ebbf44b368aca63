package input

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Recognise says what a text is. The name is that of its file, "-" or empty for standard input.
func Recognise(name string, data []byte) Input {
	if len(bytes.TrimSpace(data)) == 0 {
		return Input{Kind: Empty, What: "an empty file", Remedy: "write a batch script that begins with #!/bin/sh, or a job in YAML: command: hostname"}
	}
	if in, ok := recogniseBinary(name, data); ok {
		return in
	}
	text := string(bytes.TrimPrefix(data[:min(len(data), maxLooked)], byteOrderMark))
	base := strings.ToLower(path.Base(name))
	if in, ok := recogniseMarkup(text, base); ok {
		return in
	}
	if strings.HasPrefix(text, "#!") && !runsCox(text) {
		if in, ok := batchTemplate(name, text); ok {
			return in
		}
		return Input{Kind: Batch}
	}
	for _, recognise := range []func(name, base, text string) (Input, bool){
		recogniseProse, recogniseSlurmConf, recogniseNotebook, recogniseImageRecipe, recogniseYAML, recogniseProgram,
	} {
		if in, ok := recognise(name, base, text); ok {
			return in
		}
	}
	return Input{Kind: Batch}
}

// maxLooked is how many bytes of a text are looked at: what it is shows before that.
const maxLooked = 128 << 10

var byteOrderMark = []byte("\xef\xbb\xbf")

// runsCox reports whether the interpreter of a script is cox: its text is then a job for cox.
func runsCox(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return slices.ContainsFunc(strings.Fields(strings.TrimPrefix(first, "#!")), func(w string) bool { return path.Base(w) == "cox" })
}

// startsText reports whether a text begins with one of some words, whatever their case, after
// white space.
func startsText(text string, words ...string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return slices.ContainsFunc(words, func(w string) bool {
		return len(text) >= len(w) && strings.EqualFold(text[:len(w)], w)
	})
}

// recogniseMarkup recognises web pages and XML.
func recogniseMarkup(text, base string) (Input, bool) {
	switch {
	case startsText(text, "<!doctype html", "<html", "<head", "<body"):
		in := Input{Kind: HTML, What: "a web page", Remedy: "download the file itself and not the page that shows it"}
		if strings.Contains(text, "github") {
			in.Remedy = "download the file itself and not the page that shows it: the link behind Raw"
		}
		return in, true
	case startsText(text, "<?xml") || strings.HasSuffix(base, ".xml"):
		return Input{Kind: HTML, What: "XML", Remedy: "write a batch script or a job in the native form (docs/reference/native.md)"}, true
	}
	return Input{}, false
}

// recogniseNotebook recognises a Jupyter notebook.
func recogniseNotebook(name, base, text string) (Input, bool) {
	if !strings.HasSuffix(base, ".ipynb") && !(startsText(text, "{") && strings.Contains(text, `"nbformat"`)) {
		return Input{}, false
	}
	return Input{
		Kind: Notebook, What: "a Jupyter notebook",
		Remedy: "let a job execute it: cox submit -- jupyter execute " + shownName(name, "NOTEBOOK.ipynb"),
	}, true
}

// shownName is the name of a file as a command takes it.
func shownName(name, otherwise string) string {
	if name == "" || name == "-" {
		return otherwise
	}
	return name
}

// recogniseImageRecipe recognises files from which images of containers are built.
func recogniseImageRecipe(name, base, text string) (Input, bool) {
	first := firstInstruction(text)
	word, _, _ := strings.Cut(first.text, " ")
	switch {
	case base == "dockerfile", base == "containerfile", strings.HasPrefix(base, "dockerfile."), strings.HasSuffix(base, ".dockerfile"),
		word == "FROM", word == "ARG" && strings.Contains(text, "\nFROM "):
		return Input{
			Kind: Dockerfile, What: "a Dockerfile", Line: first.number,
			Remedy: "build an image of it (docker build -t NAME -f " + shownName(name, "Dockerfile") + " .), and name it in a job: image: NAME",
		}, true
	case strings.HasSuffix(base, ".def") && word == "Bootstrap:", strings.EqualFold(word, "Bootstrap:"):
		return Input{
			Kind: Dockerfile, What: "a definition file of Apptainer", Line: first.number,
			Remedy: "build an image of it (apptainer build NAME.sif " + shownName(name, "FILE.def") + "), and run it in a batch script: apptainer exec --nv NAME.sif COMMAND",
		}, true
	}
	return Input{}, false
}

// slurmLine is a line that a slurm.conf has and nothing else.
var slurmLine = regexp.MustCompile(`(?im)^(ClusterName|SlurmctldHost|NodeName|PartitionName)\s*=\s*\S`)

// recogniseSlurmConf finds what a Slurm cluster is configured by.
func recogniseSlurmConf(name, base, text string) (Input, bool) {
	if !slurmLine.MatchString(text) || strings.Contains(text, "#SBATCH") {
		return Input{}, false
	}
	return Input{
		Kind: SlurmConf, What: "the configuration of a Slurm cluster",
		Remedy: "to make rules and partitions from it: cox import slurm " + shownName(name, "slurm.conf") + " -o queues.yaml --config cox.yaml",
	}, true
}

// line is a line of a text and its number from 1.
type line struct {
	text   string
	number int
}

// firstInstruction is the first line that is neither blank nor a comment.
func firstInstruction(text string) line {
	n := 0
	for l := range strings.Lines(text) {
		n++
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			return line{l, n}
		}
	}
	return line{}
}

// recogniseProse recognises pages of documentation by their name: their text can be anything.
func recogniseProse(_, base, _ string) (Input, bool) {
	switch path.Ext(base) {
	case ".md", ".markdown", ".rst", ".adoc":
		return Input{Kind: Document, What: "a page of documentation", Remedy: "copy the script out of it into a file of its own"}, true
	}
	return Input{}, false
}
