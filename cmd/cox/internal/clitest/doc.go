// Package clitest runs commands of cox in the test process, against a fake server
// that answers with what the test sets and records what it was asked.
//
// A test names the packages whose commands it needs (Root); the fake implements no
// rule of the real server.
package clitest
