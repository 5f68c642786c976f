for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head), number = head.classList.contains("number");
    const now = head.getAttribute("aria-sort");
    const order = now === "none" ? (number ? "descending" : "ascending") : now === "ascending" ? "descending" : "ascending";
    const sign = order === "ascending" ? 1 : -1;
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = number
      ? (a, b) => sign * (Number(key(a)) - Number(key(b)))
      : (a, b) => sign * key(a).localeCompare(key(b), undefined, { numeric: true });
    body.append(...[...body.rows].sort(compare));
    for (const other of head.parentNode.children) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", other === head ? order : "none");
    }
    document.getElementById("said").textContent = `Sorted by ${button.textContent}, ${order}.`;
  });
}
