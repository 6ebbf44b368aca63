package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ebitengine/purego"
)

// library is the part of libpmix that is used.
type library struct {
	version string // "4.2.2"

	getVersion     func() uintptr
	serverInit     func(module, info uintptr, n int) int32
	serverFinalize func() int32
	registerSpace  func(space uintptr, local int32, info uintptr, n int, done, data uintptr) int32
	registerClient func(proc uintptr, uid, gid uint32, object, done, data uintptr) int32
	setupFork      func(proc uintptr, env *uintptr) int32
	requestModex   func(proc, done, data uintptr) int32
	generateRegex  func(input uintptr, out *uintptr) int32
	generatePPN    func(input uintptr, out *uintptr) int32
	handleEvents   func(codes uintptr, n int, info uintptr, m int, handler, done, data uintptr)
	errorText      func(status int32) uintptr
}

// systemPlaces are where libpmix lies on systems that keep it off the loader's path.
var systemPlaces = []string{
	"libpmix.so.2",
	"/usr/lib/*/pmix2/lib/libpmix.so.2",
	"/usr/lib64/pmix/lib/libpmix.so.2",
	"/opt/pmix/lib/libpmix.so.2",
}

// besidePrograms are where the libpmix of a program itself lies, from the program's folder:
// that of an MPI of its own, or of Python's packages.
var besidePrograms = []string{
	"../lib/libpmix.so.2", "../lib64/libpmix.so.2",
	"../lib/python3*/site-packages/*/lib/libpmix.so.2", "../lib/python3*/site-packages/*.libs/libpmix*.so.2*",
}

// libraryNames lists the libraries to try: the one that $COX_PMIX names; else the machine's,
// then those beside the program.
func libraryNames(program, dir string) []string {
	if name := os.Getenv("COX_PMIX"); name != "" {
		return []string{name}
	}
	names := systemPlaces[:1:1]
	patterns := slices.Clone(systemPlaces[1:])
	if program != "" && !strings.Contains(program, "/") {
		program, _ = exec.LookPath(program)
	} else if program != "" && !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	if program != "" {
		for _, p := range besidePrograms {
			patterns = append(patterns, filepath.Join(filepath.Dir(program), p))
		}
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		names = append(names, found...)
	}
	return names
}

// libraryVersion is the version of the machine's library.
func libraryVersion() (string, error) {
	l, err := loadLibrary(libraryNames("", ""), false)
	if err != nil {
		return "", err
	}
	return l.version, nil
}

// major is the number of the version before the first dot.
func (l *library) major() int {
	number, _, _ := strings.Cut(l.version, ".")
	n, _ := strconv.Atoi(number)
	return n
}

// loadLibrary opens the first library of the list that loads and is of a version that is
// served. The error says what every one of the list lacks, and where one has to be: in the
// job's image, or on the node.
func loadLibrary(names []string, inImage bool) (*library, error) {
	runtime.LockOSThread() // what dlerror says is the thread's own
	defer runtime.UnlockOSThread()
	var failures []string
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL) // its plug-ins need its symbols
		if err != nil {
			failures = append(failures, strings.Join(strings.Fields(err.Error()), " "))
			continue
		}
		l, err := bindLibrary(handle)
		if err == nil {
			return l, nil
		}
		failures = append(failures, fmt.Sprintf("%s: %v", name, err))
	}
	place, install := "this node", "install libpmix, version 4 or 5 (Debian: libpmix2)"
	if inImage {
		place, install = "the job's image", "install libpmix, version 4 or 5, in the image (Debian: package libpmix2)"
	}
	return nil, fmt.Errorf("the program speaks PMIx, as Open MPI does, and no libpmix of %s can be used (%s); %s, or name one by COX_PMIX=/path/libpmix.so.2, or start the program with mpirun inside the job", place, strings.Join(failures, "; "), install)
}

// bindLibrary finds the functions and checks the version.
func bindLibrary(handle uintptr) (*library, error) {
	l := &library{}
	for _, f := range []struct {
		name string
		into any
	}{
		{"PMIx_Get_version", &l.getVersion},
		{"PMIx_server_init", &l.serverInit},
		{"PMIx_server_finalize", &l.serverFinalize},
		{"PMIx_server_register_nspace", &l.registerSpace},
		{"PMIx_server_register_client", &l.registerClient},
		{"PMIx_server_setup_fork", &l.setupFork},
		{"PMIx_server_dmodex_request", &l.requestModex},
		{"PMIx_generate_regex", &l.generateRegex},
		{"PMIx_generate_ppn", &l.generatePPN},
		{"PMIx_Register_event_handler", &l.handleEvents},
		{"PMIx_Error_string", &l.errorText},
	} {
		address, err := purego.Dlsym(handle, f.name)
		if err != nil {
			return nil, fmt.Errorf("it has no %s, so it is not libpmix", f.name)
		}
		purego.RegisterFunc(f.into, address)
	}
	version, err := parseVersion(textAt(l.getVersion()))
	l.version = version
	return l, err
}

// parseVersion reads "OpenPMIx 4.2.2 (PMIx Standard: …" and refuses versions that are not
// served.
func parseVersion(text string) (string, error) {
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimSuffix(word, ",")
		number, _, ok := strings.Cut(word, ".")
		major, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		if major != 4 && major != 5 {
			return word, fmt.Errorf("it is version %s, and Coxswain serves versions 4 and 5", word)
		}
		return word, nil
	}
	return "", fmt.Errorf("its version %q cannot be read", text)
}

// failed makes an error of a status; nil for success.
func (l *library) failed(what string, status int32) error {
	if status == 0 || status == statusDone {
		return nil
	}
	return fmt.Errorf("libpmix %s: %s: %s (%d)", l.version, what, textAt(l.errorText(status)), status)
}

// statusDone says that an operation is complete and will not be answered later.
const statusDone = -157
