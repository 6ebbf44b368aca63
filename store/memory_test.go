package store_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/storetest"
)

func TestMemory(t *testing.T) {
	kept := map[string]*store.Memory{}
	storetest.Run(t, storetest.Harness{Open: func(_ *testing.T, key string) store.Store {
		if kept[key] == nil {
			kept[key] = new(store.Memory)
		}
		kept[key].Reopen()
		return kept[key]
	}})
}
