// The console in Chromium: it asks for an account, draws its charts, and lists what runs.
import { chromium } from 'playwright-core';

const [endpoint, executablePath, screenshot] = process.argv.slice(2);
const check = (name, ok) => {
  if (!ok) throw new Error(name);
  console.log(`ok  ${name}`);
};

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const stranger = await browser.newPage();
  const refused = await stranger.goto(`http://${endpoint}/`).catch((error) => error);
  check('a browser without an account sees nothing', refused instanceof Error || refused.status() === 401);

  const context = await browser.newContext({
    httpCredentials: { username: 'watcher', password: 'new' },
    viewport: { width: 1400, height: 1000 },
  });
  const page = await context.newPage();
  const troubles = [];
  page.on('console', (message) => message.type() === 'error' && troubles.push(message.text()));
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('request', (request) => request.url().startsWith(`http://${endpoint}/`) || troubles.push(request.url()));
  await page.goto(`http://${endpoint}/`);
  await page.waitForSelector('#statements tbody tr');
  const texts = await page.locator('#statements td.text').allTextContents();
  check('top statements', texts.some((text) => text.includes('`avocet_statement_summary`') || text.includes('SELECT')));
  const server = await page.locator('#server').textContent();
  check('the server', server.includes('watcher@localhost') && server.includes('avocet'));
  check('charts', (await page.locator('#charts figure:visible canvas').count()) >= 4);
  await page.waitForTimeout(5000);
  const legends = await page.locator('#charts figure:visible').first().textContent();
  check('their title', legends.includes('Statements per second'));
  // Something is drawn: pixels of the first line's colour.
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelectorAll('#charts figure canvas')[1];
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, at) => at % 4 === 3 && value > 0);
  });
  check('a chart is drawn', drawn);
  check('no replication on a server of its own', await page.locator('#replication-section').isHidden());
  check(`nothing is missing, and nothing comes from elsewhere: ${troubles}`, troubles.length === 0);
  await page.screenshot({ path: screenshot, fullPage: true });
} finally {
  await browser.close();
}
