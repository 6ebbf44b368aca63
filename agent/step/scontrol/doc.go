// Package scontrol is scontrol as far as it needs no server: host lists, and inside of
// a job that job itself.
package scontrol
