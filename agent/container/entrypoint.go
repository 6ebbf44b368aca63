package container

import (
	"encoding/json"
	"strings"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// EntrypointVariable says in the environment of a task what its words are to the image of its container:
// with EntrypointArgs they are arguments of the image's entry point, with EntrypointImage they do not count,
// and what the image says runs. Without it they are the command.
const (
	EntrypointVariable = "COX_ENTRYPOINT"
	EntrypointArgs     = "args"
	EntrypointImage    = "image"
)

// EntrypointCommand prints what an image runs. It fails with fault.Unsupported for a runtime that does not know.
func (s *Settings) EntrypointCommand(image string) (Command, error) {
	if s.Runtime != Podman && s.Runtime != Docker || containeropt.IsFile(image) {
		return Command{}, fault.New(fault.Unsupported, "image %s: nobody knows its entry point: podman and docker know that of their images", image).
			Advise("write the program that it starts as command")
	}
	return call(append([]string{s.Program}, s.Args...), []string{
		"image", "inspect", `--format={"entrypoint":{{json .Config.Entrypoint}},"cmd":{{json .Config.Cmd}}}`, containeropt.Reference(image),
	}), nil
}

// FillEntrypoint is the command of a task by what EntrypointCommand printed.
func FillEntrypoint(image, how, printed string, args []string) ([]string, error) {
	var of struct{ Entrypoint, Cmd []string }
	if err := json.Unmarshal([]byte(strings.TrimSpace(printed)), &of); err != nil {
		return nil, fault.New(fault.Internal, "image %s: its entry point cannot be read: %w", image, err)
	}
	if how == EntrypointImage {
		args = of.Cmd
	}
	words := append(of.Entrypoint, args...)
	if len(words) == 0 {
		return nil, fault.New(fault.Invalid, "image %s says of no program that it runs", image).Advise("write one as command")
	}
	return words, nil
}
