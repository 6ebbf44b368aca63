package input

import (
	"bytes"
	"path"
	"regexp"
	"strings"
	"sync"
)

// fileMagics are the beginnings of binary files.
var fileMagics = []struct{ magic, what, remedy string }{
	{"\x7fELF", "a program", "run it as a command: cox run -- %s"},
	{"\x1f\x8b", "a gzip archive", "unpack it and name the script in it: gunzip, or tar -xzf for a .tar.gz"},
	{"PK\x03\x04", "a zip archive", "unpack it and name the script in it: unzip %s"},
	{"BZh", "a bzip2 archive", "unpack it and name the script in it: tar -xjf %s"},
	{"\xfd7zXZ\x00", "an xz archive", "unpack it and name the script in it: tar -xJf %s"},
	{"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it and name the script in it: unzstd %s"},
	{"%PDF-", "a PDF document", "copy the script out of it into a file of its own"},
	{"\x89PNG", "a picture", "name a script"},
	{"\xff\xfe", "text in UTF-16", "turn it into UTF-8: iconv -f UTF-16 -t UTF-8 %s"},
	{"\xfe\xff", "text in UTF-16", "turn it into UTF-8: iconv -f UTF-16 -t UTF-8 %s"},
}

// recogniseBinary recognises what is no text.
func recogniseBinary(name string, data []byte) (Input, bool) {
	for _, m := range fileMagics {
		if bytes.HasPrefix(data, []byte(m.magic)) {
			file := shownName(name, "FILE")
			if m.magic == "\x7fELF" && !strings.Contains(file, "/") {
				file = "./" + file
			}
			return Input{Kind: Binary, What: m.what, Remedy: strings.ReplaceAll(m.remedy, "%s", file)}, true
		}
	}
	i := bytes.IndexByte(data, 0)
	switch {
	case i < 0:
		return Input{}, false
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return Input{Kind: Binary, What: "a tar archive", Remedy: "unpack it and name the script in it: tar -xf " + shownName(name, "FILE")}, true
	}
	return Input{
		Kind: Binary, What: "a binary file (it has a NUL character)", Line: 1 + bytes.Count(data[:i], []byte("\n")),
		Remedy: "name a script; a program is a command: cox run -- PROGRAM",
	}, true
}

// languages are the programming languages that are known by the end of a file's name, with the
// command that runs a program.
var languages = []struct{ end, name, run string }{
	{".py", "Python", "python3"},
	{".r", "R", "Rscript"},
	{".jl", "Julia", "julia"},
	{".pl", "Perl", "perl"},
	{".js", "JavaScript", "node"},
	{".m", "MATLAB", "matlab -batch"},
}

var pythonLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:import [A-Za-z_][\w., ]*(?: as \w+)?\s*$|from [A-Za-z_.][\w.]* import |def \w+\(.*:\s*$|class \w+.*:\s*$|if __name__ ==|@\w+)`)
})

// recogniseProgram recognises a program without a line #! that says what runs it.
func recogniseProgram(name, base, text string) (Input, bool) {
	for _, l := range languages {
		if path.Ext(base) == l.end && !(l.end != ".py" && hasDirectives(text)) {
			return programOf(l.name, l.run, shownName(name, "FILE"+l.end)), true
		}
	}
	first := firstInstruction(text)
	if hasDirectives(text) || !pythonLine().MatchString(text) || !startsPython(first.text) {
		return Input{}, false
	}
	in := programOf("Python", "python3", shownName(name, "FILE.py"))
	in.Line = first.number
	return in, true
}

// startsPython reports whether the first line of a text can be one of Python.
func startsPython(first string) bool {
	return pythonLine().MatchString(first) || strings.HasPrefix(first, `"""`) || strings.HasPrefix(first, "'''")
}

func programOf(language, run, file string) Input {
	return Input{
		Kind: Python, What: "a program in " + language,
		Remedy: "let a job run it: cox submit -- " + run + " " + file + "; or write a batch script that does",
	}
}

// hasDirectives reports whether a text has lines for sbatch.
func hasDirectives(text string) bool {
	return strings.HasPrefix(text, "#SBATCH") || strings.Contains(text, "\n#SBATCH")
}
