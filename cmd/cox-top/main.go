// Command cox-top is the live full-screen view of a server: nodes with their
// devices, running jobs with where their gangs are, the queue with its reasons, and
// pools. It follows the output of a job, opens a shell in it, says why it waits and
// cancels it. cox top starts it.
//
// It is a program of its own because the terminal library that it uses costs more
// start-up time than all of cox. It asks the API: a watch of events says when to
// look, at most four times a second, and a look every two seconds keeps times and
// use of nodes honest. A shell is a process of cox shell, which has the terminal
// meanwhile. Nothing is cancelled without a question.
//
// The model (model.go, keys.go, command.go, logs.go) is a pure function of messages.
// Only data.go, follow.go, shell.go and gpuuse.go ask a server or start a process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	fl := flag.NewFlagSet("cox-top", flag.ContinueOnError)
	server := fl.String("server", "", "the server: unix:///path, http://host:port (default: COX_SERVER, then this machine's)")
	first := fl.String("view", "nodes", "the first view: nodes, jobs, queue or pools")
	plain := fl.Bool("no-color", false, "no colours")
	if err := fl.Parse(args); err != nil {
		return fault.Invalid.ExitCode()
	}
	v, ok := viewNamed(*first)
	if !ok {
		return printError(fault.New(fault.Invalid, "--view %s: there is no such view", *first).Advise("nodes, jobs, queue or pools"))
	}
	c, err := client.New(client.Options{URL: *server})
	if err != nil {
		return printError(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := c.Info(ctx); err != nil { // before the screen is taken over
		return printError(err)
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return printError(fault.New(fault.Unsupported, "a full-screen view needs a terminal").Advise("cox nodes and cox queue --watch print lines"))
	}
	src := &remote{c: c, ctx: ctx, server: *server}
	m := newModel(src, v, !*plain && os.Getenv("NO_COLOR") == "", time.Now)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithFPS(30))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		src.followChanges(p.Send)
	}()
	_, err = p.Run()
	cancel()
	<-ended
	if err != nil {
		return printError(err)
	}
	return 0
}

func printError(err error) int {
	fmt.Fprintf(os.Stderr, "cox-top: %v\n", err)
	if r := fault.Remedy(err); r != "" {
		fmt.Fprintf(os.Stderr, "  %s\n", r)
	}
	return fault.KindOf(err).ExitCode()
}
