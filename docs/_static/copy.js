// A button that copies the code of a block; what a command prints has none.
if (navigator.clipboard) {
  for (const block of document.querySelectorAll("div[class*='highlight-']:not(.output) > div.highlight")) {
    if (block.closest(".cell_output")) continue;
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").innerText.trimEnd() + "\n");
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    block.append(button);
  }
}
