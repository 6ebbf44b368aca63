//go:build !planted_borrows_all

package planted

const BorrowsAll = false
