package clientstest

import (
	"testing"
)

func TestSubmitit(t *testing.T) {
	t.Parallel()
	s := openSite(t, "submitit")
	s.compare("functions.txt", s.run("python", "functions.py")+s.states("JobName,State,ExitCode,AllocNodes"))
}

func TestParsl(t *testing.T) {
	t.Parallel()
	s := openSite(t, "parsl")
	s.compare("blocks.txt", s.run("python", "blocks.py")+s.states("State,ExitCode,AllocNodes"))
}
