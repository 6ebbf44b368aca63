package main

import (
	"testing"
)

func TestWithoutAServerItIsSaidWhatToDo(t *testing.T) {
	r := coxAt(t, "unix:///nowhere/cox.sock", "", "queue")
	r.Check(t, 75, "", "cox: no server answers at unix:///nowhere/cox.sock\n  start one: cox up -d; set COX_SERVER to unix:///path or http://host:port for another server\n")
	coxAt(t, "ftp://x", "", "queue").Check(t, 2, "", "~ftp is not spoken")
	coxAt(t, "unix:///nowhere/cox.sock", "", "version").Check(t, 0, "~cox development", "")
}
