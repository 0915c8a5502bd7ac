// Package writer sends rows. Writer.Write takes the PlainBuffer bytes of one batch and returns one outcome for each
// row. Rows that cannot be repeated safely first get a mark or a timestamp, and are looked up before they are sent
// again. A request refused for its content is halved until the bad row is alone. A row counts as written only if the
// service says so, or if none of its cells is left (Expiry). The writer does not wait or decide when to retry.
package writer
